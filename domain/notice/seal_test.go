package notice

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sealer(t interface{ Fatal(...any) }, secret byte) Sealer {
	s, err := NewSealer(bytes.Repeat([]byte{secret}, SealKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A recorded webhook shows its origin and no secret, passes the webhook checks, and can be opened
// with the key.
func TestSeal(t *testing.T) {
	s, other := sealer(t, 1), sealer(t, 2)
	seen := map[string]string{}
	for _, url := range goodURLs() {
		sealed := s.Seal(url)
		switch opened, err := s.Open(sealed); {
		case err != nil || opened != url:
			t.Errorf("%s opens as %s: %v", url, opened, err)
		case sealed != s.Seal(url):
			t.Errorf("%s is sealed in two ways", url)
		case Webhook{sealed}.bad() != "" || Webhook{sealed}.Origin() != Webhook{url}.Origin():
			t.Errorf("%s is sealed as %s", url, sealed)
		case seen[sealed] != "":
			t.Errorf("%s and %s are sealed as one", url, seen[sealed])
		}
		seen[sealed] = url
		if opened, err := other.Open(sealed); err == nil || strings.Contains(err.Error(), sealed) {
			t.Errorf("another key opens %s: %s, %v", url, opened, err)
		}
		if again := s.Seal(sealed); again == sealed {
			t.Errorf("who gives %s again is taken for us", sealed)
		}
	}
	const hush = "https://hooks.example.com/hush-hush?token=hush-hush"
	if sealed := s.Seal(hush); strings.Contains(sealed, "hush") {
		t.Errorf("%s shows a secret", sealed)
	}
	moved := strings.Replace(s.Seal(hush), "hooks.", "evil.", 1)
	damaged := s.Seal(hush)[:len(s.Seal(hush))-1] + "!"
	for _, bad := range []string{moved, damaged, "https://hooks.example.com" + sealedPath, "https://hooks.example.com" + sealedPath + "AAAA"} {
		if opened, err := s.Open(bad); err == nil {
			t.Errorf("%s opens as %s", bad, opened)
		}
	}
	for _, plain := range append(badURLs(), hush) {
		if opened, err := s.Open(plain); err != nil || opened != plain {
			t.Errorf("%q, which is not sealed, opens as %q: %v", plain, opened, err)
		}
	}
	if _, err := NewSealer([]byte("short")); err == nil {
		t.Error("a short secret is taken")
	}
}

// The longest URL that a client may give still fits after sealing.
func TestSealedFits(t *testing.T) {
	s := sealer(t, 1)
	for _, origin := range []string{"https://a.example", "https://" + strings.Repeat("a.", 120) + "example:65535"} {
		url := origin + "/" + strings.Repeat("x", GivenURLMax-len(origin)-1)
		if sealed := s.Seal(url); len(url) != GivenURLMax || len(sealed) > URLMax {
			t.Errorf("%d bytes are sealed as %d, of %d", len(url), len(sealed), URLMax)
		}
	}
}

// Opening any sealed URL, damaged or not, returns the original or an error.
func TestSealAnything(t *testing.T) {
	s := sealer(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		url := "https://x.example" + rapid.StringMatching(`(/[!-"$-~]{0,40})?`).Draw(t, "rest")
		sealed := s.Seal(url)
		if opened, err := s.Open(sealed); err != nil || opened != url {
			t.Fatalf("%q opens as %q: %v", url, opened, err)
		}
		at := rapid.IntRange(len("https://x.example"+sealedPath), len(sealed)-1).Draw(t, "at")
		with := rapid.SampledFrom([]byte("AZaz09-_")).Draw(t, "with")
		if damaged := sealed[:at] + string(with) + sealed[at+1:]; damaged != sealed {
			if opened, err := s.Open(damaged); err == nil {
				t.Fatalf("%q was sealed; what is damaged opens as %q", url, opened)
			}
		}
	})
}

// A sealer opens URLs of earlier sealers, and seals the same as without them.
func TestSealAfterAnother(t *testing.T) {
	const url = "https://hooks.example.com/in?token=t"
	before, alone := sealer(t, 1), sealer(t, 2)
	both := alone.After(sealer(t, 3), before)
	if opened, err := both.Open(before.Seal(url)); err != nil || opened != url {
		t.Errorf("%s, %v", opened, err)
	}
	if both.Seal(url) != alone.Seal(url) {
		t.Error("it seals otherwise")
	}
	if _, err := both.Open(sealer(t, 4).Seal(url)); err == nil {
		t.Error("it opens what a stranger has sealed")
	}
}
