package relay

import (
	"strconv"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// readRequests reads the body of POST /v1/intents: one intent or a list. A list is counted and
// charged before its first item is decoded. key is the request's Idempotency-Key; empty if it has
// none.
func readRequests(body []byte, key string, most int, charge func(n int) error) (all []intent.Request, batch bool, err error) {
	d := reading{rest.NewDocument(body)}
	err = d.Whole(func() error {
		if batch = d.IsList(); !batch {
			r, err := d.keyed(key)
			all = []intent.Request{r}
			return err
		}
		n := d.Count(most)
		if n > most {
			return rest.ErrBatchTooLarge.Because("a batch holds at most %d intents", most)
		}
		if err := charge(n); err != nil {
			return err
		}
		return d.List(func(i int) error {
			of := key
			if key != "" {
				of = key + itemMark + strconv.Itoa(i)
			}
			r, err := d.keyed(of)
			all = append(all, r)
			return err
		})
	})
	switch {
	case err != nil:
		return nil, batch, err
	case len(all) == 0:
		return nil, batch, rest.ErrEmptyBatch
	case !batch && key != "" && all[0].Key != key:
		return nil, batch, rest.ErrInvalidIdempotencyKey.At("#/key", "the header Idempotency-Key and the member key differ")
	}
	return all, batch, nil
}

// itemMark separates the Idempotency-Key of a list from the number of an item, from 0. Together they
// are the key of an intent that has no key of its own, so that the same list sent again requests the
// same intents.
const itemMark = "#"

// keyed reads one intent. key is its idempotency key if it has none of its own; if key is empty, the
// intent needs one.
func (d reading) keyed(key string) (intent.Request, error) {
	r, given, err := d.request()
	switch {
	case err != nil || given:
		return r, err
	case key == "":
		return r, d.Wrong(`lacks the member "key", and the request has no Idempotency-Key`)
	}
	r.Key = key
	return r, nil
}

// ReadRequest reads one intent in the form of POST /v1/intents. It does not set the client.
func ReadRequest(body []byte) (r intent.Request, err error) {
	d := reading{rest.NewDocument(body)}
	err = d.Whole(func() error {
		r, err = d.keyed("")
		return err
	})
	return r, err
}

// reading reads the parts of an intent.
type reading struct{ *rest.Document }

// request reads one intent, and reports whether it has an idempotency key of its own.
func (d reading) request() (r intent.Request, keyed bool, err error) {
	var plain intent.Call
	one := false // to, value or data is given
	member := func(name string, read func() error) rest.Member {
		return rest.Member{Name: name, Read: read, Optional: true}
	}
	of := func(name string, read func() error) rest.Member {
		return member(name, func() error { one = true; return read() })
	}
	err = d.Object(
		rest.Member{Name: "chainId", Read: func() (err error) { r.Chain, err = d.Chain(); return err }},
		member("key", func() error { keyed = true; return d.text(&r.Key) }),
		member("signer", func() (err error) { r.Signer, err = d.address(); return err }),
		member("pool", func() error { return d.text(&r.Pool) }),
		of("to", func() (err error) { plain.To, err = d.address(); return err }),
		of("value", func() error { return d.amount(&plain.Value) }),
		of("data", func() error { return d.data(&plain.Data) }),
		member("calls", func() error {
			return d.List(func(i int) error {
				if i == intent.CallsMax {
					return intent.ErrTooLarge.Because("it has more than %d calls", intent.CallsMax)
				}
				c, err := d.call()
				r.Calls = append(r.Calls, c)
				return err
			})
		}),
		member("gas", func() error { return d.gas(&r.Gas) }),
		member("notBefore", func() error { return d.number(&r.NotBefore) }),
		member("deadline", func() error { return d.number(&r.Deadline) }),
		member("orderingKey", func() error { return d.text(&r.Order) }),
		member("nonceKey", func() error { return d.nonceKey(&r.NonceKey) }),
		member("subject", func() error { return d.text(&r.Subject) }),
		member("webhooks", func() error { return d.webhooks(&r) }),
		member("metadata", func() error { return d.metadata(&r) }),
		member("simulate", func() (err error) { r.Simulate, err = d.Flag(); return err }),
	)
	switch {
	case err != nil:
		return r, keyed, err
	case one && r.Calls != nil:
		return r, keyed, d.Wrong("has calls and also to, value or data")
	case one:
		r.Calls = []intent.Call{plain}
	}
	return r, keyed, nil
}

func (d reading) call() (c intent.Call, err error) {
	err = d.Object(
		rest.Member{Name: "to", Optional: true, Read: func() (err error) { c.To, err = d.address(); return err }},
		rest.Member{Name: "value", Optional: true, Read: func() error { return d.amount(&c.Value) }},
		rest.Member{Name: "data", Optional: true, Read: func() error { return d.data(&c.Data) }},
	)
	return c, err
}

func (d reading) gas(g *intent.Gas) error {
	return d.Object(
		rest.Member{Name: "limit", Optional: true, Read: func() error { return d.number(&g.Limit) }},
		rest.Member{Name: "urgency", Optional: true, Read: func() error { return d.text((*string)(&g.Urgency)) }},
		rest.Member{Name: "maxFeePerGas", Optional: true, Read: func() error { return d.amount(&g.MaxFee) }},
		rest.Member{Name: "maxPriorityFeePerGas", Optional: true, Read: func() error { return d.amount(&g.MaxPriorityFee) }},
		rest.Member{Name: "feeToken", Optional: true, Read: func() (err error) { g.FeeToken, err = d.address(); return err }},
		rest.Member{Name: "sponsored", Optional: true, Read: func() (err error) { g.Sponsored, err = d.Flag(); return err }},
	)
}

func (d reading) nonceKey(p *intent.NoncePolicy) error {
	return d.Object(
		rest.Member{Name: "mode", Read: func() error { return d.text((*string)(&p.Mode)) }},
		rest.Member{Name: "key", Optional: true, Read: func() error {
			text, err := d.Text()
			if err != nil {
				return err
			}
			key, err := chain.ParseNonceKey(text)
			if err != nil {
				return d.Wrong("is not a nonce key: %v", err)
			}
			p.Key = &key
			return nil
		}},
	)
}

func (d reading) webhooks(r *intent.Request) error {
	return d.List(func(i int) error {
		if i == intent.WebhooksMax {
			return intent.ErrTooLarge.Because("it has more than %d webhooks", intent.WebhooksMax)
		}
		url, err := d.Text()
		r.Webhooks = append(r.Webhooks, intent.Webhook{URL: url})
		return err
	})
}

func (d reading) metadata(r *intent.Request) error {
	r.Metadata = map[string]string{}
	return d.Map(func(name string) error {
		if len(r.Metadata) == intent.EntriesMax {
			return intent.ErrTooLarge.Because("it has more than %d entries of metadata", intent.EntriesMax)
		}
		value, err := d.Text()
		r.Metadata[name] = value
		return err
	})
}

func (d reading) number(into *uint64) (err error) {
	*into, err = d.Number()
	return err
}

func (d reading) text(into *string) (err error) {
	*into, err = d.Text()
	return err
}

func (d reading) address() (*chain.Address, error) {
	text, err := d.Text()
	if err != nil {
		return nil, err
	}
	a, err := chain.ParseAddress(text)
	if err != nil {
		return nil, d.Wrong("is not an address: %v", err)
	}
	return &a, nil
}

func (d reading) amount(into *intent.Amount) error {
	text, err := d.Text()
	if err != nil {
		return err
	}
	if *into, err = intent.ParseAmount(text); err != nil {
		return d.Wrong("must be a decimal number below 2^256 in a string")
	}
	return nil
}

func (d reading) data(into *intent.Data) error {
	text, err := d.Text()
	if err != nil {
		return err
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		return d.Wrong("must be 0x and an even number of hex digits")
	}
	return nil
}
