package tx

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Hand-written decoders for the most frequent events, because a rebuild reads all of them. They
// expect the members in struct order. JSON in any other form is decoded through the struct tags.

func scanAccepted(s *eventlog.Scan) (a Accepted) {
	s.Open()
	s.Must(`"chain":`)
	a.Chain = chain.ID(s.Uint(64))
	s.Must(`"hash":`)
	s.Hex(a.Hash[:])
	s.Must(`"type":`)
	a.Type = uint8(s.Uint(8)) //nolint:gosec // no more bits were read
	s.Must(`"sender":`)
	s.Hex(a.Sender[:])
	s.Must(`"signature":`)
	a.Signature = chain.SignatureKind(s.Text())
	a.AccessKey = scanAddress(s, `"accessKey":`)
	if s.Member(`"authorized":`) {
		a.Authorized = s.Bool()
	}
	a.FeePayer = scanAddress(s, `"feePayer":`)
	s.Must(`"nonceKey":`)
	s.ShortHex(a.NonceKey[:])
	s.Must(`"nonce":`)
	a.Nonce = s.Uint(64)
	a.Group = eventlog.Optional(s, `"group":`, func(g *chain.GroupID) { s.Hex(g[:]) })
	if s.Member(`"window":`) {
		s.Open()
		if s.Member(`"after":`) {
			a.Window.After = s.Uint(64)
		}
		if s.Member(`"before":`) {
			a.Window.Before = s.Uint(64)
		}
		s.Close()
	}
	s.Must(`"eligibleAt":`)
	a.EligibleAt = s.Uint(64)
	s.Must(`"bytes":`)
	a.Bytes = int(s.Int())
	s.Must(`"rawHash":`)
	s.Hex(a.RawHash[:])
	a.Client = eventlog.OptionalText[string](s, `"client":`)
	a.At = s.At()
	return a
}

func scanBroadcast(s *eventlog.Scan) (b Broadcast) {
	s.Open()
	s.Must(`"attempt":`)
	b.Attempt = int(s.Int())
	b.Answers = scanAnswers(s)
	b.At = s.At()
	return b
}

func scanRejected(s *eventlog.Scan) (r Rejected) {
	s.Open()
	s.Must(`"attempt":`)
	r.Attempt = int(s.Int())
	s.Must(`"class":`)
	r.Class = Class(s.Text())
	r.Cause = eventlog.OptionalText[Cause](s, `"cause":`)
	r.Reason = eventlog.OptionalText[string](s, `"reason":`)
	if s.Member(`"permanent":`) {
		r.Permanent = s.Bool()
	}
	r.Answers = scanAnswers(s)
	r.At = s.At()
	return r
}

func scanMined(s *eventlog.Scan) (m Mined) {
	s.Open()
	s.Must(`"receipt":`)
	s.Open()
	m.Receipt.Block = scanBlock(s, `"block":`)
	s.Must(`"index":`)
	m.Receipt.Index = s.Uint(64)
	s.Must(`"status":`)
	m.Receipt.Status = s.Uint(64)
	s.Must(`"gasUsed":`)
	m.Receipt.GasUsed = s.Uint(64)
	m.Receipt.EffectiveGasPrice = eventlog.OptionalText[string](s, `"effectiveGasPrice":`)
	m.Receipt.FeePayer = scanAddress(s, `"feePayer":`)
	m.Receipt.FeeToken = scanAddress(s, `"feeToken":`)
	s.Close()
	m.At = s.At()
	return m
}

func scanFinalized(s *eventlog.Scan) (f Finalized) {
	s.Open()
	s.Must(`"verdict":`)
	f.Verdict = Status(s.Text())
	f.Block = scanBlock(s, `"block":`)
	f.By = scanBlock(s, `"by":`)
	f.At = s.At()
	return f
}

func scanErased(s *eventlog.Scan) (e PayloadErased) {
	s.Open()
	e.At = s.At()
	return e
}

func scanAddress(s *eventlog.Scan, name string) *chain.Address {
	return eventlog.Optional(s, name, func(a *chain.Address) { s.Hex(a[:]) })
}

func scanBlock(s *eventlog.Scan, name string) (b chain.Block) {
	s.Must(name)
	s.Open()
	s.Must(`"number":`)
	b.Number = s.Uint(64)
	s.Must(`"hash":`)
	s.Hex(b.Hash[:])
	if s.Member(`"parent":`) {
		s.Hex(b.Parent[:])
	}
	s.Must(`"time":`)
	b.Time = s.Uint(64)
	s.Close()
	return b
}

func scanAnswers(s *eventlog.Scan) []Answer {
	s.Must(`"answers":`)
	s.Literal("[")
	all := []Answer{}
	for !s.Lost() && !s.Next("]") {
		if len(all) > 0 {
			s.Literal(",")
		}
		var a Answer
		s.Open()
		s.Must(`"endpoint":`)
		a.Endpoint = s.Text()
		s.Must(`"class":`)
		a.Class = Class(s.Text())
		if s.Member(`"cause":`) {
			a.Cause = Cause(s.Text())
		}
		if s.Member(`"code":`) {
			a.Code = int(s.Int())
		}
		if s.Member(`"message":`) {
			a.Message = s.Text()
		}
		if s.Member(`"took":`) {
			a.Took = time.Duration(s.Int())
		}
		s.Close()
		all = append(all, a)
	}
	return all
}
