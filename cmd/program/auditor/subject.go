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

// ErrUnknown: the log has no such transaction, group or stream, or had not at a point.
var ErrUnknown = errors.New("the log has no event of it")

// ErrSubject: a text names no subject.
var ErrSubject = errors.New("not a subject")

// notYet is an ErrUnknown about a point.
type notYet struct{ text string }

func (e notYet) Error() string      { return e.text }
func (notYet) Is(target error) bool { return target == ErrUnknown }

func notYetf(format string, args ...any) error { return notYet{fmt.Sprintf(format, args...)} }

// misnamed is an ErrSubject.
type misnamed struct{ error }

func (misnamed) Is(target error) bool { return target == ErrSubject }
func (m misnamed) Unwrap() error      { return m.error }

func misnamedf(format string, args ...any) error { return misnamed{fmt.Errorf(format, args...)} }

// Forms reads further forms of subjects than Subject knows: the stream that a text names, and a
// description of it; false if the text has none of these forms.
type Forms func(text string) (name eventlog.Stream, what string, is bool)

// endings finds streams by the end of their names. Sources on a database have it.
type endings interface {
	Ending(ctx context.Context, ending string, most int) ([]eventlog.Stream, error)
}

// Subject finds the stream that a text names: the hash of a transaction, SENDER/GROUP of a
// group, a form of forms, a name of one of the further kinds, or the name of a stream. Hashes and groups are searched on these chains; if
// there are none, on every chain of the log.
func Subject(ctx context.Context, s Source, text string, chains []chain.ID, forms Forms, kinds ...Kind) (eventlog.Stream, error) {
	if forms != nil {
		if name, what, is := forms(text); is {
			return only(ctx, s, []eventlog.Stream{name}, text, what)
		}
	}
	for _, k := range kinds {
		if k.Named == nil {
			continue
		}
		if names, what := k.Named(text, chains); what != "" {
			if len(names) == 0 {
				return "", misnamedf("name the chain of %s with --chain", what)
			}
			return only(ctx, s, names, text, what)
		}
	}
	names, what, err := named(text, chains)
	if err != nil {
		return "", err
	}
	if len(chains) > 0 || !strings.HasPrefix(text, "0x") {
		return only(ctx, s, names, text, what)
	}
	found, is := s.(endings)
	if !is {
		return "", misnamedf("name the chain with --chain: this store cannot find a stream by a part of its name")
	}
	const most = 100 // more chains than a log has
	_, ending, _ := strings.Cut(string(names[0]), "-1-")
	if names, err = found.Ending(ctx, "-"+ending, most); err != nil {
		return "", err
	}
	return only(ctx, s, names, text, what+" on any chain")
}

// only returns the one of some names that the log has.
func only(ctx context.Context, s Source, names []eventlog.Stream, text, what string) (eventlog.Stream, error) {
	known, err := s.Known(ctx, names)
	if err != nil {
		return "", err
	}
	var found []eventlog.Stream
	for _, name := range names {
		if known[name] {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", misnamedf("%s is on several chains: name one with --chain, or name the stream: %v", text, found)
	}
	return "", fmt.Errorf("%s: %w", what, ErrUnknown)
}

// named returns the streams that a text may name, and a description of them. Without chains, it
// returns the stream on chain 1.
func named(text string, chains []chain.ID) (names []eventlog.Stream, what string, err error) {
	on := ""
	for i, id := range chains {
		if on += " or "; i == 0 {
			on = " on chain "
		}
		on += id.String()
	}
	if len(chains) == 0 {
		chains = []chain.ID{1}
	}
	if sender, id, is := strings.Cut(text, "/"); is {
		of := group.ID{}
		if of.Sender, err = chain.ParseAddress(sender); err == nil {
			of.Group, err = chain.ParseGroupID(id)
		}
		if err != nil {
			return nil, "", misnamedf("%s is not SENDER/GROUP: %w", text, err)
		}
		for _, of.Chain = range chains {
			names = append(names, of.Stream())
		}
		return names, "group " + text + on, nil
	}
	if !strings.HasPrefix(text, "0x") {
		return []eventlog.Stream{eventlog.Stream(text)}, fmt.Sprintf("stream %q, because it is neither a 0x hash nor SENDER/GROUP", text), nil
	}
	hash, err := chain.ParseHash(text)
	if err != nil {
		return nil, "", misnamedf("%s is not a transaction's hash: %w", text, err)
	}
	for _, id := range chains {
		names = append(names, tx.Stream(id, hash))
	}
	return names, "transaction " + text + on, nil
}
