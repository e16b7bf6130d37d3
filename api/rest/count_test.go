package rest

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestCountElements(t *testing.T) {
	for text, want := range map[string]int{
		`[]`: 0, ` [ ] `: 0, `[1]`: 1, "[\n1 , 2\t]": 2, `[[1,2],[3]]`: 2, `["a,b","\",",""]`: 3, `["\\",1]`: 2, `[{"a":[1,2]},{"b":1,"c":2}]`: 2,
		`{}`: 0, `{"a":1}`: 1, `{"a":[1,2],"b":{"c":1,"d":2}}`: 2, `1,2`: 0, ``: 0, `"[1]"`: 0, `[1,2],3`: 2, `[1,2`: 2, `[1,"`: 2, `]`: 0,
		`[0,0,0,0,0,0,0,0,0,0,0,0,0]`: 11, // most and one
	} {
		if got := CountElements([]byte(text), 10); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) any {
			return []any{1, "a,]\"[\\", []any{1, []any{}, 2}, map[string]any{"x,": []any{1, 2}, "y": nil}}[rapid.IntRange(0, 3).Draw(t, "kind")]
		})).Draw(t, "list")
		text, err := json.Marshal(list)
		if err != nil || CountElements(text, len(list)) != len(list) || CountElements(text, len(list)/2) != min(len(list), len(list)/2+1) {
			t.Errorf("%s: %d of %d, %v", text, CountElements(text, len(list)), len(list), err)
		}
	})
}
