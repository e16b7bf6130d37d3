package simulation

import (
	"reflect"
	"slices"
)

// Shrink makes a plan smaller as long as broken reports that the smaller plan still shows the
// defect: shorter, then without one kind of fault after the other, then shorter again.
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
	const least = 0.01 // in hours
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

// switches are the fields of a plan that can be switched off: the fields of its parts, and fields
// that enable a part.
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
