package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The vector is taken from the specification's own libraries.
func TestSign(t *testing.T) {
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(t, err)
	const id, want = "msg_p5jXN8AQM9LWM0D4loKWxJek", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	at, body := time.Unix(1614265330, 999_999_999), []byte(`{"test": 2432232314}`)
	if got := Sign([]Secret{secret}, id, at, body); got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
	other := newSecret(t)
	both := Sign([]Secret{other, secret}, id, at, body)
	if first := Sign([]Secret{other}, id, at, body); both != first+" "+want || first == want {
		t.Errorf("signed by two: %s", both)
	}
}

func TestParseSecret(t *testing.T) {
	text := func(size int) string {
		return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, size))
	}
	for _, size := range []int{24, 32, 64} {
		s, err := ParseSecret(text(size))
		if err != nil || s.Reveal() != text(size) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	for what, bad := range map[string]string{
		"nothing":       "",
		"prefix alone":  "whsec_",
		"too short":     text(23),
		"too long":      text(65),
		"other prefix":  "whsk_" + strings.TrimPrefix(text(24), "whsec_"),
		"no prefix":     strings.TrimPrefix(text(24), "whsec_"),
		"no padding":    strings.TrimRight(text(25), "="),
		"URL alphabet":  strings.ReplaceAll(text(24), "+", "-"),
		"newline":       text(24) + "\n",
		"newline in it": text(24)[:20] + "\n" + text(24)[20:],
		"spare bits":    text(25)[:len(text(25))-3] + "x==",
	} {
		if s, err := ParseSecret(bad); err == nil {
			t.Errorf("%s: accepted", what)
		} else if s.key != nil || len(bad) > 8 && strings.Contains(err.Error(), bad[7:]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if (Secret{}).Reveal() != "" {
		t.Error("the zero secret reveals something")
	}
}

// A secret is not shown, in any format and within any value.
func TestSecretIsNotShown(t *testing.T) {
	secret, err := ParseSecret("whsec_" + base64.StdEncoding.EncodeToString([]byte("canary-canary-canary-canary-0001")))
	must(t, err)
	type inner struct{ hidden Secret }
	values := []any{secret, &secret, []Secret{secret}, inner{secret}, &inner{secret}, map[string]Secret{"a": secret},
		Endpoint{URL: "https://example.org", Secrets: []Secret{secret}}, &Endpoint{Secrets: []Secret{secret}},
		struct{ e []Secret }{[]Secret{secret}}}
	var out bytes.Buffer
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Error(err)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("it", "value", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("it", "value", v)
	}
	key := []byte("canary-canary-canary-canary-0001")
	for what, canary := range map[string]string{
		"text": secret.Reveal()[len(secretPrefix):], "bytes": "canary-canary", "hex": fmt.Sprintf("%x", key[:6]),
		"upper hex": fmt.Sprintf("%X", key[:6]), "numbers": "99 97 110", "Go": "0x63, 0x61",
	} {
		if strings.Contains(out.String(), canary) {
			t.Errorf("a secret shows as %s", what)
		}
	}
	if !strings.Contains(out.String(), redacted) {
		t.Error("nothing was printed")
	}
}
