package jsonrpc

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Requests, and the exact bytes of their answers, over a socket.
func TestEnvelope(t *testing.T) {
	const version = `{"jsonrpc":"2.0","id":%s,"result":"1337"}`
	refusal := func(id string, code int, message string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, message)
	}
	call := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"net_version"}` }
	s := newStack(t)
	for name, test := range map[string]struct{ body, want string }{
		// ids are returned as sent
		"number":               {call(`1`), fmt.Sprintf(version, `1`)},
		"number with fraction": {call(`1.50`), fmt.Sprintf(version, `1.50`)},
		"large number":         {call(`123456789012345678901234567890`), fmt.Sprintf(version, `123456789012345678901234567890`)},
		"negative number":      {call(`-1e3`), fmt.Sprintf(version, `-1e3`)},
		"string":               {call(`"a<\u00e9\"b"`), fmt.Sprintf(version, `"a<\u00e9\"b"`)},
		"empty string":         {call(`""`), fmt.Sprintf(version, `""`)},
		"null":                 {call(`null`), fmt.Sprintf(version, `null`)},
		"object as id":         {call(`{}`), refusal("null", -32600, "invalid request: an id is a string, a number or null")},
		"array as id":          {call(`[1]`), refusal("null", -32600, "invalid request: an id is a string, a number or null")},
		"boolean as id":        {call(`true`), refusal("null", -32600, "invalid request: an id is a string, a number or null")},

		// the object
		"empty parameters":   {`{"jsonrpc":"2.0","id":1,"method":"net_version","params":[]}`, fmt.Sprintf(version, `1`)},
		"null parameters":    {`{"jsonrpc":"2.0","id":1,"method":"net_version","params":null}`, fmt.Sprintf(version, `1`)},
		"members of others":  {`{"jsonrpc":"2.0","id":1,"method":"net_version","origin":{"a":[1,2]}}`, fmt.Sprintf(version, `1`)},
		"space around":       {" \t\r\n" + call(`1`) + "\n ", fmt.Sprintf(version, `1`)},
		"no version":         {`{"id":1,"method":"net_version"}`, refusal("1", -32600, `invalid request: the member jsonrpc must be "2.0"`)},
		"version 1.0":        {`{"jsonrpc":"1.0","id":1,"method":"net_version"}`, refusal("1", -32600, `invalid request: the member jsonrpc must be "2.0"`)},
		"version as number":  {`{"jsonrpc":2.0,"id":1,"method":"net_version"}`, refusal("1", -32600, `invalid request: the member jsonrpc must be "2.0"`)},
		"another case":       {`{"jsonrpc":"2.0","id":1,"Method":"net_version"}`, refusal("1", -32600, "invalid request: the member method must be a string")},
		"no method":          {`{"jsonrpc":"2.0","id":1}`, refusal("1", -32600, "invalid request: the member method must be a string")},
		"null as method":     {`{"jsonrpc":"2.0","id":1,"method":null}`, refusal("1", -32600, "invalid request: the member method must be a string")},
		"number as method":   {`{"jsonrpc":"2.0","id":"x","method":1}`, refusal(`"x"`, -32600, "invalid request: the member method must be a string")},
		"string as params":   {`{"jsonrpc":"2.0","id":1,"method":"net_version","params":"x"}`, refusal("1", -32600, "invalid request: params must be an array")},
		"named params":       {`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":{}}`, refusal("1", -32602, "parameters are taken by position: params must be an array")},
		"too many params":    {`{"jsonrpc":"2.0","id":1,"method":"net_version","params":[1]}`, refusal("1", -32602, "too many arguments, want at most 0")},
		"unknown method":     {`{"jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{}]}`, refusal("1", -32601, "the method eth_sendTransaction does not exist/is not available")},
		"strange method":     {`{"jsonrpc":"2.0","id":1,"method":"\u0000\n"}`, refusal("1", -32601, `the method \x00\n does not exist/is not available`)},
		"method prefix":      {`{"jsonrpc":"2.0","id":1,"method":"eth_chainI"}`, refusal("1", -32601, "the method eth_chainI does not exist/is not available")},
		"long method":        {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("a", 5000) + `"}`, refusal("1", -32601, "the method "+strings.Repeat("a", 64)+" does not exist/is not available")},
		"a number":           {`1`, refusal("null", -32600, "invalid request: a call is an object")},
		"a string":           {`"eth_chainId"`, refusal("null", -32600, "invalid request: a call is an object")},
		"null as a call":     {`null`, refusal("null", -32600, "invalid request: a call is an object")},
		"a notification":     {`{"jsonrpc":"2.0","method":"net_version"}`, ``},
		"a bad notification": {`{"jsonrpc":"2.0"}`, refusal("null", -32600, "invalid request: the member method must be a string")},

		// the text
		"nothing":              {``, refusal("null", -32700, "parse error: not JSON")},
		"cut short":            {`{"jsonrpc":"2.0","id":1`, refusal("null", -32700, "parse error: not JSON")},
		"two texts":            {call(`1`) + call(`2`), refusal("null", -32700, "parse error: not JSON")},
		"trailing comma":       {`[` + call(`1`) + `,]`, refusal("null", -32700, "parse error: not JSON")},
		"byte order mark":      {"\xef\xbb\xbf" + call(`1`), refusal("null", -32700, "parse error: not JSON")},
		"invalid UTF-8":        {call("\"\xff\""), refusal("null", -32700, "parse error: invalid UTF-8")},
		"a member twice":       {`{"jsonrpc":"2.0","id":1,"id":2,"method":"net_version"}`, refusal("null", -32700, `parse error: the member "id" is there twice`)},
		"twice by an escape":   {`{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"net_version"}`, refusal("null", -32700, `parse error: the member "id" is there twice`)},
		"twice in a parameter": {`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x1","data":"to","to":"0x2"}]}`, refusal("null", -32700, `parse error: the member "to" is there twice`)},
		"values alike":         {`{"jsonrpc":"2.0","id":"id","method":"net_version","x":{"id":"id","y":["id","id",{"id":1}]}}`, fmt.Sprintf(version, `"id"`)},
		"deep":                 {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), refusal("null", -32700, "parse error: not JSON")},

		// batches
		"batch":              {`[` + call(`1`) + `,` + call(`"b"`) + `]`, `[` + fmt.Sprintf(version, `1`) + `,` + fmt.Sprintf(version, `"b"`) + `]`},
		"batch of one":       {`[` + call(`1`) + `]`, `[` + fmt.Sprintf(version, `1`) + `]`},
		"one id for two":     {`[` + call(`1`) + `,` + call(`1`) + `]`, `[` + fmt.Sprintf(version, `1`) + `,` + fmt.Sprintf(version, `1`) + `]`},
		"empty batch":        {`[]`, refusal("null", -32600, "empty batch")},
		"batch of numbers":   {`[1,2]`, `[` + refusal("null", -32600, "invalid request: a call is an object") + `,` + refusal("null", -32600, "invalid request: a call is an object") + `]`},
		"batch in a batch":   {`[[` + call(`1`) + `]]`, `[` + refusal("null", -32600, "invalid request: a call is an object") + `]`},
		"all notifications":  {`[{"jsonrpc":"2.0","method":"net_version"},{"jsonrpc":"2.0","method":"nothing"}]`, ``},
		"with notifications": {`[{"jsonrpc":"2.0","method":"net_version"},` + call(`2`) + `]`, `[` + fmt.Sprintf(version, `2`) + `]`},
		"batch too large":    {`[` + strings.Repeat(call(`1`)+`,`, 100) + call(`1`) + `]`, refusal("null", -32600, "batch too large: at most 100 calls")},
	} {
		t.Run(name, func(t *testing.T) {
			status, got, header := s.post("/rpc", test.body)
			want := http.StatusOK
			if test.want == "" {
				want = http.StatusNoContent
			}
			if got != test.want || status != want {
				t.Errorf("%d %s\nwant %d %s", status, got, want, test.want)
			}
			if got != "" && (header.Get("Content-Type") != "application/json" || header.Get("X-Request-Id") == "") {
				t.Errorf("headers %v", header)
			}
		})
	}
}

// A large batch is answered in order, though every second call is answered only after the call
// behind it.
func TestBatchKeepsItsOrder(t *testing.T) {
	s := newStack(t)
	answered := make([]chan struct{}, 100)
	for i := range answered {
		answered[i] = make(chan struct{})
	}
	s.node.does("eth_getBalance", func(params json.RawMessage, _ int64) (json.RawMessage, error) {
		i, err := strconv.Atoi(strings.Trim(string(params), `[]"`))
		if i%2 == 0 {
			<-answered[i+1]
		}
		close(answered[i])
		return params, err
	})
	var calls, want []string
	for i := range 100 {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_getBalance","params":["%d"]}`, i, i))
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":["%d"]}`, i, i))
	}
	if _, got, _ := s.post("/rpc/1337", "["+strings.Join(calls, ",")+"]"); got != "["+strings.Join(want, ",")+"]" {
		t.Errorf("out of order: %s", got)
	}
}

// A fault of the request, rather than of a call, is answered with an HTTP problem.
func TestTransport(t *testing.T) {
	s := newStack(t, func(_ *Config, a *delivery.Config) { a.Limits.BodyBytes = 1000 })
	body := `{"jsonrpc":"2.0","id":1,"method":"net_version"}`
	for name, test := range map[string]struct {
		path, body string
		header     []string
		status     int
	}{
		"no media type":    {"/rpc", body, []string{"Content-Type", ""}, http.StatusUnsupportedMediaType},
		"text":             {"/rpc", body, []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		"compressed":       {"/rpc", body, []string{"Content-Encoding", "gzip"}, http.StatusUnsupportedMediaType},
		"too large":        {"/rpc", `"` + strings.Repeat("a", 1000) + `"`, nil, http.StatusRequestEntityTooLarge},
		"a path below":     {"/rpc/1337/x", body, nil, http.StatusNotFound},
		"a trailing /":     {"/rpc/", body, nil, http.StatusNotFound},
		"with charset":     {"/rpc", body, []string{"Content-Type", "application/json; charset=utf-8"}, http.StatusOK},
		"with expectation": {"/rpc/1337", body, []string{"Expect", "100-continue"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if status, text, _ := s.post(test.path, test.body, test.header...); status != test.status {
				t.Errorf("%d %s, want %d", status, text, test.status)
			}
		})
	}
	res, err := http.Get(s.url + "/rpc")
	check(t, err)
	check(t, res.Body.Close())
	if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST" {
		t.Errorf("GET answers %d, Allow %q", res.StatusCode, res.Header.Get("Allow"))
	}
}

// A truncated body has no effect, though it contains a whole call.
func TestBodyCutShort(t *testing.T) {
	s := newStack(t)
	raw, hash := signed(t, testChain, 0)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	check(t, err)
	defer conn.Close() //nolint:errcheck // the test is over
	body := `{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":` + hexParam(raw) + `}`
	_, err = fmt.Fprintf(conn, "POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body)+1, body)
	check(t, err)
	check(t, conn.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(conn)
	check(t, err)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("answered %s", answer)
	}
	if s.state(hash).Status != "" {
		t.Error("half a request was carried out")
	}
}

func TestWhichChain(t *testing.T) {
	several := newStack(t, func(c *Config, _ *delivery.Config) {
		c.Proxies = map[chain.ID]Proxy{testChain: &node{}, 1: &node{}}
	})
	body := `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`
	for path, want := range map[string]string{
		"/rpc/1":                    `"result":"0x1"`,
		"/rpc/1337":                 `"result":"0x539"`,
		"/rpc":                      `"code":-32001,"message":"several chains are served here: post to /rpc/{chainId} with one of 1, 1337"`,
		"/rpc/2":                    `"code":-32001,"message":"the chain of this path is not served here; served: 1, 1337"`,
		"/rpc/0x1":                  `"code":-32001`,
		"/rpc/01":                   `"code":-32001`,
		"/rpc/99999999999999999999": `"code":-32001`,
	} {
		if status, text, _ := several.post(path, body); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s answered %d %s, want %s", path, status, text, want)
		}
	}
}

// If the results together are too large, each call that exceeds the limit gets an error.
func TestAnswersAreBounded(t *testing.T) {
	s := newStack(t, func(c *Config, _ *delivery.Config) { c.Limits.AnswerBytes, c.Limits.Parallel = 100, 1 })
	s.node.does("eth_getLogs", func(_ json.RawMessage, limit int64) (json.RawMessage, error) {
		if limit < 60 {
			return nil, overLimit(limit)
		}
		return json.RawMessage(`"` + strings.Repeat("x", 58) + `"`), nil
	})
	call := `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{}]}`
	_, text, _ := s.post("/rpc", "["+call+","+call+"]")
	var got []reply
	check(t, json.Unmarshal([]byte(text), &got))
	if len(got) != 2 || got[0].Error != nil {
		t.Fatal(text)
	}
	got[1].wantError(t, codeTooLarge, "response too large")
}

type overLimit int64

func (overLimit) Error() string  { return "too large" }
func (o overLimit) Limit() int64 { return int64(o) }

// A page may use the endpoint only if its origin is allowed. Without keys no other page's
// request is answered; once keys are in use, the key decides.
func TestCrossOrigin(t *testing.T) {
	for name, test := range map[string]struct {
		origins        []string
		keys           bool
		origin, allows string
		says           string
		preflight      int
	}{
		"off":              {nil, false, "https://app.example", "", "origin-not-allowed", 403},
		"listed":           {[]string{"https://a.example", "https://app.example"}, false, "https://app.example", "https://app.example", "1337", 204},
		"not listed":       {[]string{"https://a.example"}, false, "https://app.example", "", "origin-not-allowed", 403},
		"all":              {[]string{rest.AnyOrigin}, false, "https://app.example", "", "origin-not-allowed", 403},
		"another port":     {[]string{"https://a.example"}, false, "https://a.example:8443", "", "origin-not-allowed", 403},
		"off, keys":        {nil, true, "https://app.example", "", "unauthorized", 405},
		"listed, keys":     {[]string{"https://app.example"}, true, "https://app.example", "https://app.example", "unauthorized", 204},
		"not listed, keys": {[]string{"https://a.example"}, true, "https://app.example", "", "unauthorized", 405},
		"all, keys":        {[]string{rest.AnyOrigin}, true, "https://app.example", "*", "unauthorized", 204},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t, func(_ *Config, a *delivery.Config) { a.Origins, a.Access.Always = test.origins, test.keys })
			_, text, header := s.post("/rpc", `{"jsonrpc":"2.0","id":1,"method":"net_version"}`, "Origin", test.origin)
			if got := header.Get("Access-Control-Allow-Origin"); got != test.allows || !strings.Contains(text, test.says) {
				t.Errorf("allows %q, want %q: %s", got, test.allows, text)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.url+"/rpc", nil)
			check(t, err)
			req.Header.Set("Origin", test.origin)
			req.Header.Set("Access-Control-Request-Method", "POST")
			req.Header.Set("Access-Control-Request-Headers", "content-type")
			res, err := http.DefaultClient.Do(req)
			check(t, err)
			check(t, res.Body.Close())
			if res.StatusCode != test.preflight || res.Header.Get("Access-Control-Allow-Origin") != test.allows {
				t.Errorf("preflight answers %d %v", res.StatusCode, res.Header)
			}
			if test.allows != "" && !strings.Contains(res.Header.Get("Access-Control-Allow-Headers"), "Content-Type") {
				t.Errorf("preflight answers %v", res.Header)
			}
		})
	}
}
