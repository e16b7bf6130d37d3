package intent

import (
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// scanRequested is a hand-written decoder for requests, which may have much data. It expects the
// members in struct order. JSON in any other form is decoded through the struct tags.
func scanRequested(s *event.Scan) (r Requested) {
	s.Open()
	s.Must(`"id":`)
	s.Hex(r.ID[:])
	s.Must(`"digest":`)
	s.Hex(r.Digest[:])
	s.Must(`"request":`)
	scanRequest(s, &r.Request)
	r.At = s.At()
	return r
}

func scanRequest(s *event.Scan, r *Request) {
	s.Open()
	r.Client = event.OptionalText[string](s, `"client":`)
	s.Must(`"key":`)
	r.Key = s.Text()
	r.Signer = scanAddress(s, `"signer":`)
	r.Pool = event.OptionalText[string](s, `"pool":`)
	s.Must(`"chain":`)
	r.Chain = chain.ID(s.Uint(64))
	s.Must(`"calls":`)
	scanList(s, func() { r.Calls = append(r.Calls, scanCall(s)) })
	if s.Member(`"gas":`) {
		r.Gas = scanGas(s)
	}
	if s.Member(`"deadline":`) {
		r.Deadline = s.Uint(64)
	}
	r.Order = event.OptionalText[string](s, `"order":`)
	if s.Member(`"nonceKey":`) {
		r.NonceKey = scanNoncePolicy(s)
	}
	r.Subject = event.OptionalText[string](s, `"subject":`)
	if s.Member(`"webhooks":`) {
		scanList(s, func() { r.Webhooks = append(r.Webhooks, scanWebhook(s)) })
	}
	if s.Member(`"metadata":`) {
		r.Metadata = scanMetadata(s)
	}
	if s.Member(`"simulate":`) {
		r.Simulate = s.Bool()
	}
	s.Close()
}

func scanCall(s *event.Scan) (c Call) {
	s.Open()
	c.To = scanAddress(s, `"to":`)
	scanAmount(s, `"value":`, &c.Value)
	if s.Member(`"data":`) {
		c.Data = s.Bytes()
	}
	s.Close()
	return c
}

func scanGas(s *event.Scan) (g Gas) {
	s.Open()
	if s.Member(`"limit":`) {
		g.Limit = s.Uint(64)
	}
	g.Urgency = event.OptionalText[Urgency](s, `"urgency":`)
	scanAmount(s, `"maxFee":`, &g.MaxFee)
	scanAmount(s, `"maxPriorityFee":`, &g.MaxPriorityFee)
	g.FeeToken = scanAddress(s, `"feeToken":`)
	if s.Member(`"sponsored":`) {
		g.Sponsored = s.Bool()
	}
	s.Close()
	return g
}

func scanNoncePolicy(s *event.Scan) (p NoncePolicy) {
	s.Open()
	p.Mode = event.OptionalText[NonceMode](s, `"mode":`)
	p.Key = event.Optional(s, `"key":`, func(k *chain.NonceKey) { s.ShortHex(k[:]) })
	s.Close()
	return p
}

func scanWebhook(s *event.Scan) (w Webhook) {
	s.Open()
	s.Must(`"url":`)
	w.URL = s.Text()
	s.Close()
	return w
}

// scanMetadata reads an object whose members are texts.
func scanMetadata(s *event.Scan) map[string]string {
	m := map[string]string{}
	s.Literal("{")
	for more := !s.Next("}"); more && !s.Lost(); {
		name := s.Text()
		s.Literal(":")
		m[name] = s.Text()
		if more = s.Next(","); !more {
			s.Literal("}")
		}
	}
	return m
}

// scanList reads an array with at least one element.
func scanList(s *event.Scan, element func()) {
	s.Literal("[")
	for more := true; more && !s.Lost(); more = s.Next(",") {
		element()
	}
	s.Literal("]")
}

func scanAmount(s *event.Scan, name string, into *Amount) {
	if s.Member(name) && into.UnmarshalText([]byte(s.Text())) != nil {
		s.GiveUp()
	}
}

func scanAddress(s *event.Scan, name string) *chain.Address {
	return event.Optional(s, name, func(a *chain.Address) { s.Hex(a[:]) })
}
