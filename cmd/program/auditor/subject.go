package auditor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// ErrUnknown: the log has no such transaction, group or stream.
var ErrUnknown = errors.New("the log has no event of it")

// Subject finds the stream that a text names: the hash of a transaction, SENDER/GROUP of a
// group, a name of one of the further kinds, or the name of a stream. Hashes and groups are searched on
// these chains.
func Subject(ctx context.Context, s Source, text string, chains []chain.ID, kinds ...Kind) (eventlog.Stream, error) {
	named, what, err := named(text, chains, kinds)
	if err != nil {
		return "", err
	}
	known, err := s.Known(ctx, named)
	if err != nil {
		return "", err
	}
	var found []eventlog.Stream
	for _, name := range named {
		if known[name] {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%s is on several chains: name one with --chain, or name the stream: %v", text, found)
	}
	return "", fmt.Errorf("%s: %w", what, ErrUnknown)
}

// named returns the streams that a text may name, and a description of them.
func named(text string, chains []chain.ID, kinds []Kind) (names []eventlog.Stream, what string, err error) {
	for _, k := range kinds {
		if names, what := k.Named(text, chains); what != "" {
			if len(names) == 0 {
				return nil, "", errors.New("name the chain with --chain")
			}
			return names, what, nil
		}
	}
	if sender, id, is := strings.Cut(text, "/"); is {
		of := group.ID{}
		if of.Sender, err = chain.ParseAddress(sender); err != nil {
			return nil, "", fmt.Errorf("%s is not SENDER/GROUP: %w", text, err)
		}
		if of.Group, err = chain.ParseGroupID(id); err != nil {
			return nil, "", fmt.Errorf("%s is not SENDER/GROUP: %w", text, err)
		}
		for _, of.Chain = range chains {
			names = append(names, of.Stream())
		}
		what = "group " + text
	} else if strings.HasPrefix(text, "0x") {
		hash, err := chain.ParseHash(text)
		if err != nil {
			return nil, "", fmt.Errorf("%s is not a transaction's hash: %w", text, err)
		}
		for _, id := range chains {
			names = append(names, tx.Stream(id, hash))
		}
		what = "transaction " + text
	} else {
		return []eventlog.Stream{eventlog.Stream(text)}, fmt.Sprintf("stream %q, because it is neither a 0x hash nor SENDER/GROUP", text), nil
	}
	if len(names) == 0 {
		return nil, "", errors.New("name the chain with --chain")
	}
	var on []string
	for _, id := range chains {
		on = append(on, id.String())
	}
	return names, what + " on chain " + strings.Join(on, " or "), nil
}
