package intent

import (
	"bytes"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// A repeated request with sealed webhooks has the same digest; a different webhook gives another
// digest. The original request stays unchanged.
func TestSealedRequest(t *testing.T) {
	s, err := notice.NewSealer(bytes.Repeat([]byte{1}, notice.SealKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	r := whole()
	sealed := Sealed(s, r)
	if r.Webhooks[0] != whole().Webhooks[0] || sealed.Webhooks[0] == r.Webhooks[0] {
		t.Errorf("%+v was sealed as %+v", r.Webhooks, sealed.Webhooks)
	}
	if sealed.ID() != r.ID() || sealed.Digest() != Sealed(s, whole()).Digest() {
		t.Error("the same request is another one")
	}
	other := whole()
	other.Webhooks[0].URL += "x"
	if Sealed(s, other).Digest() == sealed.Digest() {
		t.Error("another request is the same")
	}
}
