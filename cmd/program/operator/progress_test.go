package operator

import "testing"

// Text written by nodes, clients and other operators cannot control a terminal.
func TestPlain(t *testing.T) {
	if got := Plain("a\x1b[2Jb\nc\u009bd é"); got != "a[2Jbcd é" {
		t.Errorf("%q", got)
	}
}
