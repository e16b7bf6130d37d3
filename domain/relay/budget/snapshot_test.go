package budget

import (
	"bytes"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// full returns a state with every kind of content.
func full(t *testing.T) State {
	t.Helper()
	s, _ := run(t, limit(whole, amount(1000), nil), limit(Account{Kind: OfClient, Client: "client0"}, amount(500), amount(7)), limit(Account{Kind: EachSigner}, nil, amount(60)),
		limit(Account{Kind: EachSubject}, amount(100), nil), reserve(two, about("ann", costs(1, 10, 5)), costs(11, 3, 0), noop(7, 4)), reserve(one, costs(2, 8, 1)), tomorrow(reserve(two, costs(1, 12, 5))), tomorrow(settle(one, 2, 4, 1)))
	return s
}

func TestSnapshotAndBack(t *testing.T) {
	for _, s := range []State{{}, full(t)} {
		back, err := Restore(s.Snapshot())
		if err != nil || !bytes.Equal(back.Snapshot(), s.Snapshot()) {
			t.Fatalf("%v\n%s\n%s", err, s.Snapshot(), back.Snapshot())
		}
		more := reserve(two, costs(1, 20, 5), costs(3, 7, 3))
		a, errA := s.Decide(more)
		b, errB := back.Decide(more)
		if errA != nil || errB != nil || len(a) != 1 || len(b) != 1 {
			t.Fatalf("%v, %v; %v, %v", a, errA, b, errB)
		}
		if a, b := s.Evolve(a[0]), back.Evolve(b[0]); !bytes.Equal(a.Snapshot(), b.Snapshot()) {
			t.Errorf("they go on apart:\n%s\n%s", a.Snapshot(), b.Snapshot())
		}
	}
}

// The format of schema 1 is frozen: a change needs the next number.
func TestSnapshotShape(t *testing.T) {
	if got := chain.Keccak(full(t).Snapshot()).String(); got != snapshotDigest || SnapshotSchema != 1 {
		t.Errorf("schema %d has the digest %s of %s", SnapshotSchema, got, full(t).Snapshot())
	}
}

const snapshotDigest = "0x20e93aa6a96d0efe82cc2c06bb2be27bdab1be0f9958591bd96088070db43eb6"

// Restoring any bytes returns a state or an error.
func FuzzRestore(f *testing.F) {
	s := State{Limits: map[Account]Limit{whole: {Fee: amount(7)}}}
	d := s.draft(today)
	d.shelf(one, 1)
	d.add(one, costs(1, 10, 5), epoch)
	f.Add(d.Snapshot())
	f.Add(State{}.Snapshot())
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Restore(data)
		if err == nil && !bytes.Equal(s.Snapshot(), data) {
			t.Errorf("%s is read as %s", data, s.Snapshot())
		}
	})
}
