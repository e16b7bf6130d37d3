package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page about the command line explains each status.
func TestStatusesAreInTheReference(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Meanings() {
		if row := fmt.Sprintf("| %d | %s |\n", s.Status, s.Meaning); !strings.Contains(string(page), row) {
			t.Errorf("the page lacks %s", row)
		}
	}
}

// The first error with a status decides, also inside others.
func TestStatusOf(t *testing.T) {
	plain := errors.New("plain")
	for _, c := range []struct {
		err  error
		want Status
	}{
		{nil, OK},
		{plain, Failed},
		{With(NotFound, plain), NotFound},
		{fmt.Errorf("more: %w", With(Refused, plain)), Refused},
		{errors.Join(plain, With(Unknown, plain), With(NotFound, plain)), Unknown},
		{fmt.Errorf("ended: %w", context.Canceled), Interrupted},
		{Misuse("--x"), Usage},
		{Quiet(Status(2)), Status(2)},
	} {
		if got := StatusOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	if With(NotFound, nil) != nil || Quiet(OK) != nil {
		t.Error("no error has become one")
	}
}
