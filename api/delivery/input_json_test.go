package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Rows 29 to 38: JSON that parsers read differently, or that does not fit the request. Apart
// from the fault each request would be accepted.
func jsonInputs(t *testing.T) (list []input) {
	raw := signed(t, newKey(t), testChain, 0)
	text := fmt.Sprintf(`"0x%x"`, raw)
	valid := string(submissionOf(testChain, raw))
	members := func(all ...string) string { return "{" + strings.Join(all, ",") + "}" }
	items := func(s string) string { return `"transactions":[` + s + `]` }
	const id = `"chainId":42431`
	on := func(literal string) string { return members(`"chainId":`+literal, items(text)) }
	of := func(item string) string { return members(id, items(item)) }
	const malformed, wrong = rest.ErrMalformedJSON, rest.ErrInvalidRequest
	for _, tt := range []struct {
		row        int
		what, body string
		code       eventlog.Refusal
	}{
		{29, "chainId twice", members(`"chainId":1`, id, items(text)), wrong},
		{29, "chainId twice, the same", members(id, id, items(text)), wrong},
		{29, "chainId twice, once with an escape", members(id, `"chain\u0049d":1`, items(text)), wrong},
		{29, "transactions twice", members(id, items(text), items(text)), wrong},
		{30, "CHAINID", members(`"CHAINID":42431`, items(text)), wrong},
		{30, "both cases", members(`"CHAINID":1`, id, items(text)), wrong},
		{31, "an unknown member", members(id, items(text), `"extra":1`), wrong},
		{31, "a member without a name", members(id, items(text), `"":1`), wrong},
		{32, "null", "null", wrong},
		{32, "null for the chain", on("null"), wrong},
		{32, "null for the list", members(id, `"transactions":null`), wrong},
		{32, "null for a transaction", of("null"), wrong},
		{32, "no chain", members(items(text)), wrong},
		{32, "no list", members(id), wrong},
		{33, "invalid UTF-8", of("\"\xff\""), malformed},
		{33, "a surrogate in UTF-8", of("\"\xed\xa0\x80\""), malformed},
		{33, "half a surrogate pair", of(`"\ud800"`), malformed},
		{33, "a pair the wrong way round", of(`"\udc00\ud800"`), malformed},
		{33, "NUL, escaped", of(`"\u0000"`), malformed},
		{33, "NUL", of("\"\x00\""), malformed},
		{34, "a byte order mark", "\xef\xbb\xbf" + valid, malformed},
		{34, "something behind the end", valid + "x", malformed},
		{34, "two documents", valid + valid, malformed},
		{34, "two documents, by lines", valid + "\n" + valid, malformed},
		{34, "NUL behind the end", valid + "\x00", malformed},
		{35, "20,000 arrays in one another", strings.Repeat("[", 20_000), wrong},
		{35, "9,999 objects in one another", strings.Repeat(`{"chainId":`, 9_999), wrong},
		{35, "a million arrays for a transaction", of(strings.Repeat("[", 1_000_000)), wrong},
		{36, "-1", on("-1"), wrong},
		{36, "1.0", on("42431.0"), wrong},
		{36, "4e4", on("4e4"), wrong},
		{36, "2^64", on("18446744073709551616"), wrong},
		{36, "1e999", on("1e999"), wrong},
		{36, "a leading zero", on("042431"), wrong},
		{36, "100,000 digits", on(strings.Repeat("9", 100_000)), wrong},
		{36, "0xa5bf", on("0xa5bf"), malformed},
		{36, "NaN", on("NaN"), malformed},
		{37, "a number in quotes", on(`"42431"`), wrong},
		{37, "a number for a string", of("1"), wrong},
		{37, "true for a number", on("true"), wrong},
		{37, "an object for a string", of("{}"), wrong},
		{38, "an array around it", "[" + valid + "]", wrong},
		{38, "a string around it", fmt.Sprintf("%q", valid), wrong},
		{38, "an object for the list", members(id, `"transactions":{"0":`+text+`}`), wrong},
	} {
		list = append(list, input{row: tt.row, what: tt.what, request: posted(tt.body), answer: refuses(400, tt.code)})
	}
	return list
}
