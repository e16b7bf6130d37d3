package intent

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/request"
)

// Bounds of a request. A request at all bounds fits into one event.
const (
	OrderMax     = 128      // bytes of an ordering key
	NameMax      = 64       // bytes of a client's, a pool's or a metadata entry's name
	SubjectMax   = 128      // bytes
	CallsMax     = 32       // the limit of Tempo's pool
	DataMax      = 96 << 10 // bytes of input of all calls together
	WebhooksMax  = notice.WebhooksMax
	GivenURLMax  = notice.GivenURLMax // bytes of a webhook's URL, as given by a client
	EntriesMax   = 16                 // metadata entries
	MetadataMax  = 2 << 10            // bytes of metadata, names and values together
	GasLimitMax  = 1 << 40
	deadlineSecs = 253_402_300_799 // 9999-12-31T23:59:59Z in Unix seconds
)

// Check refuses a request that is out of bounds or can never be carried out. The operator's rules
// are checked elsewhere: allowed signers, targets, budgets, and webhook hosts (refused with
// [ErrWebhookURL]).
func (r Request) Check() error {
	switch {
	case r.Client != "" && !isName(r.Client, NameMax):
		return ErrInvalid.Because("a client is 1 to %d of A-Z, a-z, 0-9 and ._:-", NameMax)
	case !request.IsKey(r.Key):
		return ErrInvalidKey.At("#/key", "an idempotency key is %s", request.KeyForm)
	case r.Chain == 0:
		return ErrInvalid.At("#/chainId", "it names no chain")
	case (r.Signer == nil) == (r.Pool == ""):
		return ErrInvalid.Because("it must name either a signer or a pool")
	case r.Signer != nil && *r.Signer == chain.Address{}:
		return ErrInvalid.At("#/signer", "the zero address cannot be a signer")
	case r.Pool != "" && !isName(r.Pool, NameMax):
		return ErrInvalid.At("#/pool", "a pool is 1 to %d of A-Z, a-z, 0-9 and ._:-", NameMax)
	case r.Order != "" && !isName(r.Order, OrderMax):
		return ErrInvalid.At("#/orderingKey", "an ordering key is 1 to %d of A-Z, a-z, 0-9 and ._:-", OrderMax)
	case r.NotBefore > deadlineSecs:
		return ErrInvalid.At("#/notBefore", "notBefore is in Unix seconds, at most %d", deadlineSecs)
	case r.Deadline != 0 && r.NotBefore >= r.Deadline:
		return ErrInvalid.At("#/notBefore", "notBefore %d is not before the deadline %d", r.NotBefore, r.Deadline)
	case r.Deadline > deadlineSecs:
		return ErrInvalid.At("#/deadline", "a deadline is in Unix seconds, at most %d", deadlineSecs)
	case len(r.Subject) > SubjectMax || !isText(r.Subject):
		return ErrInvalid.At("#/subject", "a subject has at most %d bytes of printable text", SubjectMax)
	}
	for _, check := range []func() error{r.checkCalls, r.Gas.check, r.checkNonceKey, r.checkMetadata} {
		if err := check(); err != nil {
			return err
		}
	}
	if len(r.Webhooks) > WebhooksMax {
		return ErrTooLarge.Because("it has %d webhooks; at most %d are allowed", len(r.Webhooks), WebhooksMax)
	}
	return notice.CheckWebhooks(r.Webhooks)
}

func (r Request) checkCalls() error {
	if len(r.Calls) == 0 {
		return ErrInvalid.Because("it has no call")
	}
	if len(r.Calls) > CallsMax {
		return ErrTooLarge.At("#/calls", "it has %d calls; at most %d are allowed", len(r.Calls), CallsMax)
	}
	total := 0
	for i, c := range r.Calls {
		total += len(c.Data)
		switch {
		case c.To == nil && i > 0:
			return ErrInvalid.At(fmt.Sprintf("#/calls/%d", i), "call %d has no target; only the first call may create a contract", i)
		case c.To == nil && len(c.Data) == 0:
			return ErrInvalid.Because("the creation of a contract needs data")
		}
	}
	if total > DataMax {
		return ErrTooLarge.Because("its calls have %d bytes of data; at most %d are allowed", total, DataMax)
	}
	return nil
}

func (g Gas) check() error {
	switch {
	case g.Limit > GasLimitMax:
		return ErrInvalid.At("#/gas/limit", "a gas limit is at most %d", uint64(GasLimitMax))
	case g.Urgency != "" && g.Urgency != Slow && g.Urgency != Normal && g.Urgency != Fast:
		return ErrInvalid.At("#/gas/urgency", "an urgency is slow, normal or fast")
	case !g.MaxFee.IsZero() && g.MaxPriorityFee.Cmp(g.MaxFee) > 0:
		return ErrInvalid.At("#/gas/maxPriorityFeePerGas", "the tip's ceiling %s is above the fee's, %s", g.MaxPriorityFee, g.MaxFee)
	}
	return nil
}

// subBlockPrefix is the first byte of the nonce keys that Tempo reserves for its validators. Its
// public pool accepts no transaction with such a key.
const subBlockPrefix = 0x5b

func (r Request) checkNonceKey() error {
	p := r.NonceKey
	switch p.Mode {
	case NonceAny, NonceProtocol, NonceOrdered:
		if p.Key != nil {
			return ErrInvalid.At("#/nonceKey/key", "a nonce key is allowed only with the mode %q", NonceFixed)
		}
		if p.Mode == NonceOrdered && r.Order == "" {
			return ErrInvalid.At("#/nonceKey/mode", "the nonce key follows from the ordering key, but there is no ordering key")
		}
	case NonceFixed:
		switch {
		case p.Key == nil:
			return ErrInvalid.At("#/nonceKey", "the mode %q needs a nonce key", NonceFixed)
		case p.Key.IsExpiring():
			return ErrInvalid.At("#/nonceKey/key", "the expiring nonce key has no sequence: its transactions can be neither replaced nor canceled")
		case p.Key[0] == subBlockPrefix:
			return ErrInvalid.At("#/nonceKey/key", "no pool accepts nonce keys that begin with 0x%x", subBlockPrefix)
		case p.Key[0] == orderFirst: // any client can compute the key of another client's ordering group
			return ErrInvalid.At("#/nonceKey/key", "nonce keys that begin with 0x%x are reserved for ordering keys: use the mode %q", orderFirst, NonceOrdered)
		}
	default:
		return ErrInvalid.At("#/nonceKey/mode", "the mode of a nonce key is protocol, ordered or fixed")
	}
	return nil
}

func (r Request) checkMetadata() error {
	if len(r.Metadata) > EntriesMax {
		return ErrTooLarge.At("#/metadata", "it has %d entries of metadata; at most %d are allowed", len(r.Metadata), EntriesMax)
	}
	total := 0
	for name, value := range r.Metadata {
		total += len(name) + len(value)
		if !isName(name, NameMax) || !isText(value) {
			return ErrInvalid.At("#/metadata", "metadata is printable text under names of 1 to %d of A-Z, a-z, 0-9 and ._:-", NameMax)
		}
	}
	if total > MetadataMax {
		return ErrTooLarge.At("#/metadata", "its metadata has %d bytes; at most %d are allowed", total, MetadataMax)
	}
	return nil
}

// passed reports whether the deadline is over at a time in Unix seconds.
func (r Request) passed(seconds uint64) bool { return r.Deadline != 0 && seconds >= r.Deadline }

func secondsOf(t time.Time) uint64 { return uint64(max(t.Unix(), 0)) }

// isName reports whether s has 1 to most characters, each safe in keys, URLs and logs.
func isName(s string, most int) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	return s != "" && len(s) <= most && strings.Trim(s, letters) == ""
}

// isText reports whether s is valid UTF-8 with only printable characters.
func isText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
