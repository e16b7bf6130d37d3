package group

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The format of schema 2 is frozen: a change needs the next number.
func TestSnapshotShape(t *testing.T) {
	s := run(t, State{}, join(1, 2), typed(1, epoch), join(3))
	if got := chain.Keccak(s.Snapshot()).String(); got != snapshotDigest || SnapshotSchema != 2 {
		t.Errorf("schema %d has the digest %s", SnapshotSchema, got)
	}
}

const snapshotDigest = "0xca4187a93038bbf6581858880715ba7d27680b4c49f3a50b74596bac611440de"

func TestSnapshotAndBack(t *testing.T) {
	many := State{}
	for n := range 300 {
		many = run(t, many, join(n))
	}
	for _, s := range []State{{}, run(t, State{}, join(1)), run(t, State{}, join(1, 2), typed(1, epoch), typed(2, epoch), join(3)), many} {
		back, err := Restore(s.Snapshot())
		if err != nil || back.Members != s.Members || back.Canceled != s.Canceled || !bytes.Equal(back.Snapshot(), s.Snapshot()) {
			t.Fatalf("%d members come back as %d: %v", s.Members, back.Members, err)
		}
		for _, m := range s.List() {
			if found, ok := back.Member(m.Hash); !ok || found != m {
				t.Fatalf("%+v comes back as %+v", m, found)
			}
		}
		// The restored state evolves like the original.
		if a, b := run(t, s, join(1000)), run(t, back, join(1000)); !bytes.Equal(a.Snapshot(), b.Snapshot()) {
			t.Fatal("they grow apart")
		}
	}
}

// A full group's state fits a snapshot with room to spare. commands keeps snapshots of up to 32 MiB.
func TestFullGroupFitsASnapshot(t *testing.T) {
	if n := len(large(MembersMax).Snapshot()) + authoritiesMax*snapshotShown; n > 6<<20 {
		t.Errorf("%d bytes", n)
	}
}

// Restoring any bytes returns a state or an error.
func FuzzRestore(f *testing.F) {
	for n := range 3 {
		s := State{}
		for i := range n {
			s = s.Evolve(joined(i))
		}
		f.Add(s.Snapshot())
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Restore(data)
		if err == nil && !bytes.Equal(s.Snapshot(), data) {
			t.Errorf("%s is read as %s", hex.EncodeToString(data), fmt.Sprintf("%x", s.Snapshot()))
		}
	})
}
