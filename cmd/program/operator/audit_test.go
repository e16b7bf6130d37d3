package operator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
)

// The report of a check names each of its numbers.
func TestReportNamesItsNumbers(t *testing.T) {
	var out bytes.Buffer
	if err := tellAudit(&out, auditor.Report{Clean: true, Events: 30, Head: 40, Unlinked: 2, Sealed: 35, Rest: 5}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"30 up to position 40, 2 of them recorded before links existed",
		"up to position 35; 5 events since",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, &out)
		}
	}
}
