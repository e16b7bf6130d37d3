package intent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// asked returns a request that is accepted.
func asked(change ...func(*Request)) Request {
	r := whole()
	r.Pool, r.Signer = "", &chain.Address{1}
	for _, c := range change {
		c(&r)
	}
	return r
}

// A request out of bounds is refused with the right error, and a request at the bounds is
// accepted.
func TestBounds(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	calls := func(n, bytes int) []Call {
		all := make([]Call, n)
		for i := range all {
			all[i] = Call{To: &chain.Address{1}, Data: make(Data, bytes/n)}
		}
		return all
	}
	entries := func(n, bytes int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint(100+i)] = long(bytes)
		}
		return all
	}
	hooks := func(n int) (all []Webhook) {
		for i := range n {
			all = append(all, Webhook{URL: fmt.Sprintf("https://hooks.example.com/%d", i)})
		}
		return all
	}
	sub := chain.NonceKey{0x5b, 31: 1}
	others, _ := Request{Client: "payroll", Order: "salaries", NonceKey: NoncePolicy{Mode: NonceOrdered}}.LaneKey()
	for name, c := range map[string]struct {
		change func(*Request)
		want   eventlog.Refusal // empty: accepted
	}{
		"every field":            {func(*Request) {}, ""},
		"no client":              {func(r *Request) { r.Client = "" }, ""},
		"strange client":         {func(r *Request) { r.Client = "pay roll" }, ErrInvalid},
		"long client":            {func(r *Request) { r.Client = long(NameMax + 1) }, ErrInvalid},
		"longest key":            {func(r *Request) { r.Key = long(request.KeyMax) }, ""},
		"no key":                 {func(r *Request) { r.Key = "" }, ErrInvalidKey},
		"long key":               {func(r *Request) { r.Key = long(request.KeyMax + 1) }, ErrInvalidKey},
		"key of every character": {func(r *Request) { r.Key = "!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~" }, ""},
		"key with a space":       {func(r *Request) { r.Key = "a b" }, ErrInvalidKey},
		"key with a tab":         {func(r *Request) { r.Key = "a\tb" }, ErrInvalidKey},
		"long order":             {func(r *Request) { r.Order = long(OrderMax + 1) }, ErrInvalid},
		"key of other digits":    {func(r *Request) { r.Key = "salary-٣" }, ErrInvalidKey},
		"key with nothing in it": {func(r *Request) { r.Key = "a\u200bb" }, ErrInvalidKey},
		"no chain":               {func(r *Request) { r.Chain = 0 }, ErrInvalid},
		"pool":                   {func(r *Request) { r.From = From{Pool: "hot"} }, ""},
		"strange pool":           {func(r *Request) { r.From = From{Pool: "hot/../cold"} }, ErrInvalid},
		"nobody":                 {func(r *Request) { r.From = From{} }, ErrInvalid},
		"signer and pool":        {func(r *Request) { r.Pool = "hot" }, ErrInvalid},
		"the zero address":       {func(r *Request) { r.Signer = &chain.Address{} }, ErrInvalid},
		"no call":                {func(r *Request) { r.Calls = nil }, ErrInvalid},
		"most calls":             {func(r *Request) { r.Calls = calls(CallsMax, 0) }, ""},
		"too many calls":         {func(r *Request) { r.Calls = calls(CallsMax+1, 0) }, ErrTooLarge},
		"most data":              {func(r *Request) { r.Calls = calls(2, DataMax) }, ""},
		"too much data":          {func(r *Request) { r.Calls = calls(2, DataMax+2) }, ErrTooLarge},
		"contract":               {func(r *Request) { r.Calls[0].To = nil }, ""},
		"contract of nothing":    {func(r *Request) { r.Calls = []Call{{}} }, ErrInvalid},
		"contract second":        {func(r *Request) { r.Calls[1].To = nil }, ErrInvalid},
		"no gas policy":          {func(r *Request) { r.Gas = Gas{} }, ""},
		"much gas":               {func(r *Request) { r.Gas.Limit = GasLimitMax + 1 }, ErrInvalid},
		"strange urgency":        {func(r *Request) { r.Gas.Urgency = "yesterday" }, ErrInvalid},
		"tip above the fee":      {func(r *Request) { r.Gas.MaxPriorityFee = NewAmount(1 << 60) }, ErrInvalid},
		"tip alone":              {func(r *Request) { r.Gas.MaxFee = Amount{} }, ""},
		"far begin":              {func(r *Request) { r.Deadline, r.NotBefore = 0, deadlineSecs+1 }, ErrInvalid},
		"begin at the deadline":  {func(r *Request) { r.NotBefore = r.Deadline }, ErrInvalid},
		"begin in time":          {func(r *Request) { r.NotBefore = r.Deadline - 1 }, ""},
		"begin, no deadline":     {func(r *Request) { r.Deadline, r.NotBefore = 0, deadlineSecs }, ""},
		"far deadline":           {func(r *Request) { r.Deadline = deadlineSecs + 1 }, ErrInvalid},
		"strange order":          {func(r *Request) { r.Order = "first, please" }, ErrInvalid},
		"ordered":                {func(r *Request) { r.NonceKey = NoncePolicy{Mode: NonceOrdered} }, ""},
		"ordered by nothing":     {func(r *Request) { r.Order, r.NonceKey = "", NoncePolicy{Mode: NonceOrdered} }, ErrInvalid},
		"protocol":               {func(r *Request) { r.NonceKey = NoncePolicy{Mode: NonceProtocol} }, ""},
		"protocol and a key":     {func(r *Request) { r.NonceKey.Mode = NonceProtocol }, ErrInvalid},
		"fixed without a key":    {func(r *Request) { r.NonceKey.Key = nil }, ErrInvalid},
		"expiring":               {func(r *Request) { r.NonceKey.Key = &chain.ExpiringKey }, ErrInvalid},
		"a validator's key":      {func(r *Request) { r.NonceKey.Key = &sub }, ErrInvalid},
		"the key of a row":       {func(r *Request) { r.NonceKey.Key = &others }, ErrInvalid},
		"strange mode":           {func(r *Request) { r.NonceKey.Mode = "random" }, ErrInvalid},
		"long subject":           {func(r *Request) { r.Subject = long(SubjectMax + 1) }, ErrInvalid},
		"subject in two lines":   {func(r *Request) { r.Subject = "a\nb" }, ErrInvalid},
		"broken subject":         {func(r *Request) { r.Subject = "a\xff" }, ErrInvalid},
		"most webhooks":          {func(r *Request) { r.Webhooks = hooks(WebhooksMax) }, ""},
		"too many webhooks":      {func(r *Request) { r.Webhooks = hooks(WebhooksMax + 1) }, ErrTooLarge},
		"a webhook twice":        {func(r *Request) { r.Webhooks = append(hooks(2), hooks(1)...) }, ErrWebhookURL},
		"most entries":           {func(r *Request) { r.Metadata = entries(EntriesMax, MetadataMax/EntriesMax-3) }, ""},
		"too many entries":       {func(r *Request) { r.Metadata = entries(EntriesMax+1, 1) }, ErrTooLarge},
		"much metadata":          {func(r *Request) { r.Metadata = entries(2, MetadataMax/2-2) }, ErrTooLarge},
		"metadata without name":  {func(r *Request) { r.Metadata = map[string]string{"": "a"} }, ErrInvalid},
		"metadata of NUL":        {func(r *Request) { r.Metadata = map[string]string{"a": "\x00"} }, ErrInvalid},
	} {
		err := asked(c.change).Check()
		if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The largest accepted request fits into an event, with any escaping.
func TestLargestFits(t *testing.T) {
	r := asked(func(r *Request) {
		r.Client, r.Key, r.Order = strings.Repeat("c", NameMax), strings.Repeat("k", request.KeyMax), strings.Repeat("o", OrderMax)
		r.Subject = strings.Repeat("<", SubjectMax)
		r.Calls, r.Webhooks, r.Metadata = nil, nil, map[string]string{}
		for i := range CallsMax {
			r.Calls = append(r.Calls, Call{To: &chain.Address{1}, Value: whole().Calls[0].Value, Data: make(Data, DataMax/CallsMax)})
			if i < WebhooksMax {
				u := fmt.Sprintf("https://x.example/%d?", i)
				r.Webhooks = append(r.Webhooks, Webhook{URL: u + strings.Repeat("&", notice.URLMax-len(u))})
			}
			if i < EntriesMax {
				r.Metadata[fmt.Sprint(100+i)] = strings.Repeat(">", MetadataMax/EntriesMax-3)
			}
		}
	})
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	events, err := State{}.Decide(Create{Request: r, At: epoch})
	if err != nil {
		t.Fatal(err)
	}
	if _, data, err := Codec().Encode(events[0]); err != nil || len(data) > eventlog.MaxEventBytes {
		t.Errorf("it takes %d bytes, an event has %d: %v", len(data), eventlog.MaxEventBytes, err)
	}
}

// Id and digest never change: a change would invalidate every idempotency key in use.
func TestFrozenDigests(t *testing.T) {
	id, digest := whole().ID().String(), whole().Digest().String()
	if id != frozenID || digest != frozenDigest {
		t.Errorf("id %s, digest %s", id, digest)
	}
	if plain := (Request{Key: "a", From: From{Pool: "p"}, Chain: 1, Calls: []Call{{To: &chain.Address{}}}}).Digest().String(); plain != frozenPlain {
		t.Errorf("digest of a plain one: %s", plain)
	}
}

// Every field and its position changes the digest: no two requests have the same one.
func TestEveryFieldCounts(t *testing.T) {
	base := asked()
	seen := map[chain.Hash]string{base.Digest(): "the request itself"}
	for what, change := range map[string]func(*Request){
		"client":                func(r *Request) { r.Client = "other" },
		"no client":             func(r *Request) { r.Client = "" },
		"key":                   func(r *Request) { r.Key += "a" },
		"signer":                func(r *Request) { r.Signer = &chain.Address{9} },
		"pool":                  func(r *Request) { r.From = From{Pool: "hot"} },
		"chain":                 func(r *Request) { r.Chain++ },
		"to":                    func(r *Request) { r.Calls[0].To = &chain.Address{9} },
		"contract":              func(r *Request) { r.Calls[0].To = nil },
		"value":                 func(r *Request) { r.Calls[0].Value = NewAmount(1) },
		"data":                  func(r *Request) { r.Calls[0].Data = Data{0xca} },
		"data where it was not": func(r *Request) { r.Calls[0].Data, r.Calls[1].Data = nil, r.Calls[0].Data },
		"fewer calls":           func(r *Request) { r.Calls = r.Calls[:1] },
		"order of calls":        func(r *Request) { r.Calls[0], r.Calls[1] = r.Calls[1], r.Calls[0] },
		"gas limit":             func(r *Request) { r.Gas.Limit++ },
		"urgency":               func(r *Request) { r.Gas.Urgency = Slow },
		"no urgency":            func(r *Request) { r.Gas.Urgency = "" },
		"ceiling":               func(r *Request) { r.Gas.MaxFee = NewAmount(7) },
		"ceiling of tips":       func(r *Request) { r.Gas.MaxPriorityFee = NewAmount(7) },
		"ceilings swapped":      func(r *Request) { r.Gas.MaxFee, r.Gas.MaxPriorityFee = r.Gas.MaxPriorityFee, r.Gas.MaxFee },
		"fee token":             func(r *Request) { r.Gas.FeeToken = &chain.Address{9} },
		"sponsored":             func(r *Request) { r.Gas.Sponsored = false },
		"begin":                 func(r *Request) { r.NotBefore++ },
		"deadline":              func(r *Request) { r.Deadline++ },
		"ordering key":          func(r *Request) { r.Order = "bob" },
		"nonce mode":            func(r *Request) { r.NonceKey.Mode = NonceAny },
		"nonce key":             func(r *Request) { r.NonceKey.Key = &chain.NonceKey{31: 6} },
		"subject":               func(r *Request) { r.Subject = "Bob" },
		"fewer webhooks":        func(r *Request) { r.Webhooks = r.Webhooks[:1] },
		"webhook":               func(r *Request) { r.Webhooks[0].URL += "x" },
		"metadata":              func(r *Request) { r.Metadata["invoice"] = "4712" },
		"more metadata":         func(r *Request) { r.Metadata["empty"] = "" },
		"less metadata":         func(r *Request) { delete(r.Metadata, "invoice") },
		"no simulation":         func(r *Request) { r.Simulate = false },
	} {
		other := asked(change)
		if same, taken := seen[other.Digest()]; taken {
			t.Errorf("%s and %s have the same digest", what, same)
		}
		seen[other.Digest()] = what
	}
}

// Requests with the same meaning have the same digest, in any notation.
func TestSaidOtherwise(t *testing.T) {
	plain := asked(func(r *Request) { r.Gas.Urgency = "" })
	if said := asked(func(r *Request) { r.Gas.Urgency = Normal }); said.Digest() != plain.Digest() {
		t.Error("the usual urgency makes another request when it is said")
	}
	if said := asked(func(r *Request) { r.Gas.Urgency, r.Calls[0].Data = "", append(Data{}, r.Calls[0].Data...) }); said.Digest() != plain.Digest() {
		t.Error("the same data makes another request")
	}
}

// Only client, signer or pool, and key determine the intent's id.
func TestIDs(t *testing.T) {
	signer := From{Signer: &chain.Address{1}}
	seen := map[chain.IntentID]bool{}
	for _, id := range []chain.IntentID{
		ID("a", signer, "bc"), ID("ab", signer, "c"), ID("", signer, "abc"), ID("a", From{Pool: "p"}, "bc"), ID("a", From{Pool: "pb"}, "c"),
		ID("a", From{Signer: &chain.Address{2}}, "bc"),
	} {
		if id.IsZero() || seen[id] {
			t.Errorf("%s is that of two wishes", id)
		}
		seen[id] = true
	}
	if asked().ID() != ID("payroll", signer, "salary-2026-11") || asked(func(r *Request) { r.Chain, r.Calls = 1, nil }).ID() != asked().ID() {
		t.Error("the id is not that of client, signer and key alone")
	}
}

// Encoding and decoding a request keeps its content and digest.
func TestSameBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Request
		if err := json.Unmarshal(data, &back); err != nil || back.Digest() != r.Digest() || !cmp.Equal(r, back) {
			t.Fatalf("%s comes back as %+v: %v", data, back, err)
		}
		if other := drawRequest(t); (other.Digest() == r.Digest()) != cmp.Equal(r, other) {
			t.Fatalf("the same digest of\n%+v and\n%+v", r, other)
		}
	})
}

// drawRequest draws from few values, so that two requests are often the same.
func drawRequest(t *rapid.T) Request {
	some := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	r := Request{Key: "k", From: From{Pool: "hot"}, Chain: 1, Calls: []Call{{To: &chain.Address{1}}}}
	if some("signer") {
		r.From = From{Signer: &chain.Address{1}}
	}
	if some("call") {
		r.Calls = append(r.Calls, Call{To: &chain.Address{1}, Data: Data{1}})
	}
	if some("value") {
		r.Calls[0].Value = NewAmount(1)
	}
	if some("metadata") {
		r.Metadata = map[string]string{"a": "b"}
	}
	if some("webhook") {
		r.Webhooks = []Webhook{{URL: "https://x.example"}}
	}
	if some("deadline") {
		r.Deadline = 1
	}
	return r
}

func TestAmounts(t *testing.T) {
	for _, good := range []string{"0", "1", "1000000000000000000", whole().Calls[0].Value.String()} {
		if a, err := ParseAmount(good); err != nil || a.String() != good || a.IsZero() != (good == "0") {
			t.Errorf("%s is %s: %v", good, a, err)
		}
	}
	top := whole().Calls[0].Value.String()
	for _, bad := range []string{"", "-1", "+1", "01", "00", "1.0", "1e3", "0x1", " 1", "1_000", "٣", top[:77] + "6", top + "0"} {
		if a, err := ParseAmount(bad); err == nil {
			t.Errorf("%q is taken as %s", bad, a)
		}
	}
	var v struct{ Value Amount }
	if err := json.Unmarshal([]byte(`{"Value":1}`), &v); err == nil {
		t.Error("a number is taken, which loses digits elsewhere")
	}
	if a := NewAmount(1); a.Int().AddUint64(a.Int(), 1).Uint64() != 2 || a != NewAmount(1) {
		t.Error("reckoning with an amount changes it")
	}
}

func TestData(t *testing.T) {
	for _, bad := range []string{"", "00", "0x0", "0xzz", "0X00"} {
		var d Data
		if err := d.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken as %s", bad, d)
		}
	}
	var d Data
	if err := d.UnmarshalText([]byte("0xCAFE")); err != nil || d.String() != "0xcafe" {
		t.Errorf("%s: %v", d, err)
	}
}

func TestStream(t *testing.T) {
	id := whole().ID()
	if back, err := ParseStream(Stream(id)); err != nil || back != id {
		t.Errorf("%s: %v", back, err)
	}
	for _, bad := range []eventlog.Stream{"", "intent-", "tx-1-0xab", "intent-0xab", Stream(id) + "0", eventlog.Stream(strings.ToUpper(string(Stream(id)))), "intent-0x" + eventlog.Stream(strings.Repeat("AB", 16))} {
		if got, err := ParseStream(bad); err == nil {
			t.Errorf("%q is read as %s", bad, got)
		}
	}
}

const (
	frozenID     = "0x04bd9eef168b414d820e897592bdc0ce"
	frozenDigest = "0x6c5576bdee6cc2f180cbfb1583d6a307fe00c5b69bfb84abd8876f4e92142440"
	frozenPlain  = "0x39d4cab198693562428c683b9b2c3619f06661b14d666047238b375f50bb79b8"
)

// Origin returns the URL's origin without the parts that may be secret.
func TestOrigin(t *testing.T) {
	for url, want := range map[string]string{
		"https://hooks.example.com/secret?token=secret": "https://hooks.example.com",
		"https://hooks.example.com:8443?token=secret":   "https://hooks.example.com:8443",
		"http://127.0.0.1:9000/a":                       "http://127.0.0.1:9000",
		"https://hooks.example.com":                     "https://hooks.example.com",
		"https://user:secret@hooks.example.com/":        "",
		"secret":                                        "",
	} {
		if got := (Webhook{URL: url}).Origin(); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
