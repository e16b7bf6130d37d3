package tempo_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// Bytes without the form of a signature verify for no account; a signature that verifies has
// the form.
func TestCheckPrimitive(t *testing.T) {
	checked, refused := 0, 0
	try := func(name string, sig []byte, digest chain.Hash) {
		form := tempo.CheckPrimitive(sig)
		_, _, err := tempo.VerifyPrimitive(sig, digest)
		var malformed *chain.Malformed
		switch {
		case form != nil && (!errors.As(form, &malformed) || malformed.Fault != chain.FaultSignature):
			t.Errorf("%s: %v is no signature fault", name, form)
		case form != nil && err == nil:
			t.Errorf("%s: verified, though %v", name, form)
		}
		checked++
		if form != nil {
			refused++
		}
	}
	for _, c := range load(t).CancelAuth {
		sig := unhex(t, strings.TrimPrefix(c.Authorization, "Signature "))
		if err := tempo.CheckPrimitive(sig); c.Expect == "valid" && err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		try(c.Name, sig, c.Hash)
		for i := range sig {
			flipped := bytes.Clone(sig)
			flipped[i] ^= 0x80
			try(c.Name+" flipped", flipped, c.Hash)
		}
		for _, other := range [][]byte{nil, sig[1:], sig[:len(sig)-1], slices.Concat(sig, []byte{0}), slices.Concat([]byte{0}, sig)} {
			try(c.Name+" cut", other, c.Hash)
		}
		zeros := bytes.Clone(sig)
		clear(zeros[max(0, len(zeros)-129):])
		try(c.Name+" zeros", zeros, c.Hash)
	}
	if checked < 1000 || refused < checked/10 {
		t.Errorf("of %d only %d had a bad form", checked, refused)
	}
}
