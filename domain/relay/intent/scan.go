package intent

import (
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// scanRequested is a hand-written decoder for requests, which may have much data. It expects the
// members in struct order. JSON in any other form is decoded through the struct tags.
func scanRequested(s *eventlog.Scan) (r Requested) {
	s.Open()
	s.Must(`"id":`)
	s.Hex(r.ID[:])
	s.Must(`"digest":`)
	s.Hex(r.Digest[:])
	s.Must(`"request":`)
	scanRequest(s, &r.Request)
	if s.Member(`"origin":`) {
		r.Origin = scanOrigin(s)
	}
	r.At = s.At()
	return r
}

func scanRequest(s *eventlog.Scan, r *Request) {
	s.Open()
	r.Client = eventlog.OptionalText[string](s, `"client":`)
	s.Must(`"key":`)
	r.Key = s.Text()
	r.Signer = scanAddress(s, `"signer":`)
	r.Pool = eventlog.OptionalText[string](s, `"pool":`)
	s.Must(`"chain":`)
	r.Chain = chain.ID(s.Uint(64))
	s.Must(`"calls":`)
	scanList(s, func() { r.Calls = append(r.Calls, scanCall(s)) })
	if s.Member(`"gas":`) {
		r.Gas = scanGas(s)
	}
	if s.Member(`"notBefore":`) {
		r.NotBefore = s.Uint(64)
	}
	if s.Member(`"deadline":`) {
		r.Deadline = s.Uint(64)
	}
	r.Order = eventlog.OptionalText[string](s, `"order":`)
	if s.Member(`"nonceKey":`) {
		r.NonceKey = scanNoncePolicy(s)
	}
	r.Subject = eventlog.OptionalText[string](s, `"subject":`)
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

func scanOrigin(s *eventlog.Scan) (o Origin) {
	s.Open()
	if s.Member(`"correlation":`) && o.Correlation.UnmarshalText([]byte(s.Text())) != nil {
		s.GiveUp()
	}
	o.Trace = eventlog.OptionalText[string](s, `"trace":`)
	s.Close()
	return o
}

func scanCall(s *eventlog.Scan) (c Call) {
	s.Open()
	c.To = scanAddress(s, `"to":`)
	scanAmount(s, `"value":`, &c.Value)
	if s.Member(`"data":`) {
		c.Data = s.Bytes()
	}
	s.Close()
	return c
}

func scanGas(s *eventlog.Scan) (g Gas) {
	s.Open()
	if s.Member(`"limit":`) {
		g.Limit = s.Uint(64)
	}
	g.Urgency = eventlog.OptionalText[Urgency](s, `"urgency":`)
	scanAmount(s, `"maxFee":`, &g.MaxFee)
	scanAmount(s, `"maxPriorityFee":`, &g.MaxPriorityFee)
	g.FeeToken = scanAddress(s, `"feeToken":`)
	if s.Member(`"sponsored":`) {
		g.Sponsored = s.Bool()
	}
	s.Close()
	return g
}

func scanNoncePolicy(s *eventlog.Scan) (p NoncePolicy) {
	s.Open()
	p.Mode = eventlog.OptionalText[NonceMode](s, `"mode":`)
	p.Key = eventlog.Optional(s, `"key":`, func(k *chain.NonceKey) { s.ShortHex(k[:]) })
	s.Close()
	return p
}

func scanWebhook(s *eventlog.Scan) (w Webhook) {
	s.Open()
	s.Must(`"url":`)
	w.URL = s.Text()
	s.Close()
	return w
}

// scanMetadata reads an object whose members are texts.
func scanMetadata(s *eventlog.Scan) map[string]string {
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
func scanList(s *eventlog.Scan, element func()) {
	s.Literal("[")
	for more := true; more && !s.Lost(); more = s.Next(",") {
		element()
	}
	s.Literal("]")
}

func scanAmount(s *eventlog.Scan, name string, into *Amount) {
	if s.Member(name) && into.UnmarshalText([]byte(s.Text())) != nil {
		s.GiveUp()
	}
}

func scanAddress(s *eventlog.Scan, name string) *chain.Address {
	return eventlog.Optional(s, name, func(a *chain.Address) { s.Hex(a[:]) })
}
