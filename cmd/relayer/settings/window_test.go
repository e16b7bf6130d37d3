package settings_test

import (
	"strconv"
	"strings"
	"testing"
)

// Nodes get as many transactions of a lane as its budget allows; the budget also lowers that
// number.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int // 0: it is refused
	}{
		{nil, 100},
		{[]string{"--lane-budget=300"}, 300},
		{[]string{"--lane-budget=5000"}, 5000},
		{[]string{"--lane-budget=1"}, 16},
		{[]string{"--lane-budget=300", "--scheduler-window=400"}, 400},
		{[]string{"--lane-budget=300", "--scheduler-window=300"}, 300},
		{[]string{"--lane-budget=300", "--scheduler-window=299"}, 0},
		{[]string{"--scheduler-window=16"}, 0},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			s, shown, err := resolve(t, "", nil, c.args...)
			if c.want == 0 {
				if err == nil || !strings.Contains(err.Error(), "flag --scheduler-window") || !strings.Contains(err.Error(), "less than lane.budget") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Delivery.Scheduler.Window != c.want {
				t.Errorf("the window is %d, want %d", s.Delivery.Scheduler.Window, c.want)
			}
			for _, one := range shown {
				if one.Name == "scheduler.window" && one.Value != strconv.Itoa(c.want) {
					t.Errorf("it is said to be %s, want %d", one.Value, c.want)
				}
			}
		})
	}
}
