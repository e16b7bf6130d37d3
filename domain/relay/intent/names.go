package intent

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Names of signers, pools and ordering groups in the work queue. The separators never occur in
// names that [Request.Check] allows.
const (
	signerName = "signer:"
	poolName   = "pool:"
	rowPart    = "/"
)

// Name returns a unique name: signer: and the address, or pool: and the pool's name.
func (f From) Name() string {
	if f.Signer != nil {
		return signerName + f.Signer.String()
	}
	return poolName + f.Pool
}

// ParseFrom parses a name made by [From.Name].
func ParseFrom(name string) (From, error) {
	if pool, ok := strings.CutPrefix(name, poolName); ok {
		return From{Pool: pool}, nil
	}
	text, ok := strings.CutPrefix(name, signerName)
	if !ok {
		return From{}, fmt.Errorf("%q names neither a signer nor a pool", name)
	}
	a, err := chain.ParseAddress(text)
	if err != nil {
		return From{}, fmt.Errorf("%q: %w", name, err)
	}
	return From{Signer: &a}, nil
}

// Name returns a name of the ordering group that is unique on its chain; empty for no group.
func (r Row) Name() string {
	if r.Order == "" {
		return ""
	}
	return r.Client + rowPart + r.Order
}

// ParseRow parses a name made by [Row.Name].
func ParseRow(id chain.ID, name string) Row {
	client, order, ok := strings.Cut(name, rowPart)
	if !ok {
		return Row{}
	}
	return Row{Chain: id, Client: client, Order: order}
}

// Names returns the names of the signer and pools whose intents the lane may claim.
func (c Claim) Names() []string {
	names := []string{From{Signer: &c.Lane.Sender}.Name()}
	for _, pool := range c.Pools {
		names = append(names, From{Pool: pool}.Name())
	}
	return names
}

// Sum merges demands for the same lanes of the same client. It orders them by name, key and
// client.
func Sum(all []Demand) (sums []Demand) {
	key := func(d Demand) []byte {
		if d.Key == nil {
			return nil
		}
		return d.Key[:]
	}
	order := func(a, b Demand) int {
		return cmp.Or(cmp.Compare(a.From.Name(), b.From.Name()), bytes.Compare(key(a), key(b)), cmp.Compare(a.Client, b.Client))
	}
	for _, d := range slices.SortedFunc(slices.Values(all), order) {
		if last := len(sums) - 1; last >= 0 && order(sums[last], d) == 0 {
			sums[last].Waiting += d.Waiting
			sums[last].Assigned += d.Assigned
			sums[last].First = min(sums[last].First, d.First)
			continue
		}
		sums = append(sums, d)
	}
	return sums
}
