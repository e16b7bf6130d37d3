package jsonrpc

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/jsonrpc.md")
	check(t, err)
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z0-9_]+)` \\| (.*?) \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
		if !slices.Contains(ownMethods(), row[1]) && row[2] != "a node" {
			t.Errorf("%s is answered by %s", row[1], row[2])
		}
	}
	methods := slices.Concat(ownMethods(), proxiedMethods())
	slices.Sort(documented)
	slices.Sort(methods)
	if diff := cmp.Diff(documented, methods); diff != "" {
		t.Errorf("docs/reference/jsonrpc.md (-) and the tables (+) differ:\n%s", diff)
	}
	var codes []int
	for _, row := range regexp.MustCompile(`(?m)^\| (-?[0-9]+) \| .`).FindAllStringSubmatch(string(text), -1) {
		code, err := strconv.Atoi(row[1])
		check(t, err)
		codes = append(codes, code)
	}
	if diff := cmp.Diff(codes, []int{
		codeParse, codeInvalidRequest, codeUnknownMethod, codeInvalidParams, codeInternal,
		codeServer, codeNotFound, codeTimeout, codeTooLarge, codeLimit, codeStillWaiting,
	}); diff != "" {
		t.Errorf("docs/reference/jsonrpc.md (-) and the codes (+) differ:\n%s", diff)
	}
	l := DefaultLimits()
	for _, figure := range []string{
		fmt.Sprintf("%g s, or what the second parameter says", l.SyncDefault.Seconds()), fmt.Sprintf("at most %g s", l.SyncMax.Seconds()),
		fmt.Sprintf("more than %d calls", l.BatchItems), fmt.Sprintf("more than %d MiB together", l.AnswerBytes>>20),
		fmt.Sprintf("more than %d MiB are on their way", l.HeldBytes>>20),
	} {
		if !strings.Contains(string(text), figure) {
			t.Errorf("docs/reference/jsonrpc.md does not say %q", figure)
		}
	}
}
