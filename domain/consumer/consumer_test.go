package consumer_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"it failed":                    "it failed",
		"a\x00b\xffc":                  "a\uFFFDb\uFFFDc",
		strings.Repeat("x", 1001):      strings.Repeat("x", 1000),
		"x" + strings.Repeat("ä", 500): "x" + strings.Repeat("ä", 499),
	} {
		got := consumer.Text(errors.New(text))
		if got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q became %.20q, %d bytes", text, got, len(got))
		}
	}
}
