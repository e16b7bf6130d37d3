package simulation

import (
	"reflect"
	"slices"
)

// Shrink makes a plan smaller as long as broken says that the smaller one still shows
// what was wrong: shorter, then with one kind of fault after the other switched off,
// then shorter again.
func Shrink(p Plan, broken func(Plan) bool) Plan {
	p = shorter(p, broken)
	for _, path := range switches(reflect.TypeFor[Plan]()) {
		smaller := p
		field := reflect.ValueOf(&smaller).Elem().FieldByIndex(path)
		if field.IsZero() {
			continue
		}
		if field.SetZero(); broken(smaller) {
			p = smaller
		}
	}
	return shorter(p, broken)
}

func shorter(p Plan, broken func(Plan) bool) Plan {
	const least = 0.01 // hours
	for p.Hours/2 > least {
		half := p
		half.Hours /= 2
		if !broken(half) {
			break
		}
		p = half
	}
	return p
}

// switches are the fields of a plan that can be switched off: those of its parts, and
// those that say that there is something at all.
func switches(plan reflect.Type) (paths [][]int) {
	for i := range plan.NumField() {
		f := plan.Field(i)
		switch {
		case f.Type.Kind() == reflect.Struct:
			for j := range f.Type.NumField() {
				if f.Type.Field(j).Name != "Depth" {
					paths = append(paths, []int{i, j})
				}
			}
		case slices.Contains([]string{"Redis", "Liar", "Confirm", "GroupAll", "Keys"}, f.Name):
			paths = append(paths, []int{i})
		}
	}
	return paths
}
