package lane

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// full returns a state with every kind of content.
func full(t *testing.T) State {
	t.Helper()
	return begun(t,
		reserve(1, 2, 3, 4), sign(11, intent(2), 1), sign(11, chain.IntentID{}, 2), land(11, 1, block(7, "a"), false),
		sign(12, intent(3), 1), Fill{1, []uint64{10}, epoch}, Advance{1, told(20), epoch}, Release{1, intents(4), "dropped", epoch})
}

func same(a, b State) string {
	return cmp.Diff(a, b, cmp.AllowUnexported(State{}))
}

func TestSnapshotAndBack(t *testing.T) {
	for _, s := range []State{{}, run(t, State{}, open(1)), begun(t), full(t)} {
		back, err := Restore(s.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if d := same(s, back); d != "" {
			t.Errorf("(-before +after):\n%s", d)
		}
	}
}

// The format of schema 1 is frozen: a change needs the next number.
func TestSnapshotShape(t *testing.T) {
	if got := chain.Keccak(full(t).Snapshot()).String(); got != snapshotDigest || SnapshotSchema != 1 {
		t.Errorf("schema %d has the digest %s", SnapshotSchema, got)
	}
}

const snapshotDigest = "0x08fd53918871d300644f537f7389681de2e906d56384f158b4fdccdd497132a6"

// Restoring any bytes returns a state or an error.
func FuzzRestore(f *testing.F) {
	for _, s := range []State{{}, {Holder: "somebody", Token: 3, Known: true, Next: 7, skipped: skipped{{1, 3}}}} {
		f.Add(s.Snapshot())
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Restore(data)
		if err == nil && !bytes.Equal(s.Snapshot(), data) {
			t.Errorf("%x is read as %x", data, s.Snapshot())
		}
	})
}
