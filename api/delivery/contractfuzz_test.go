package delivery

import (
	"encoding/hex"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	contracts "github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/contractfuzz"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// No request that the contract describes, or almost describes, gets an answer that it does not.
func TestContractFuzz(t *testing.T) {
	c, err := contractfuzz.Parse(contracts.Delivery(), "transactions", "groups", "events", "documents", "health")
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	sender := chain.Address(crypto.PubkeyToAddress(key.PublicKey))
	s := grouped(t)
	withCanceler(&s.config, s.db)
	s.config.Idempotency = rest.Idempotency{Requests: s.db.Requests(), Keep: time.Hour, Hold: time.Minute}
	s.restart()
	known := map[string][]any{"sender": {sender.String()}, "chainId": {"42431", "eip155:42431"}}
	var first []byte
	for n := range byte(4) {
		for nonce := range uint64(8) {
			raw := payment(payroll(n), nonce, func(s *chain.Signed) { s.Sender = sender })
			if known["raw"] = append(known["raw"], "0x"+hex.EncodeToString(raw)); first == nil {
				first = raw
			}
		}
		digest := group.Digest(payroll(n).Group())
		sig, err := crypto.Sign(digest[:], key)
		if err != nil {
			t.Fatal(err)
		}
		known["Authorization"] = append(known["Authorization"], "Signature 0x"+hex.EncodeToString(sig))
		known["groupId"] = append(known["groupId"], payroll(n).Group().String())
	}
	hash := s.submit(first)[0].TxHash // one transaction has a whole life
	known["hash"] = []any{hash.String()}
	s.handle(hash, tx.Report{Attempt: 1, At: testTime, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}})
	s.mined(hash)
	contractfuzz.Check(t, c, contractfuzz.Target{Base: "http://" + s.addr, Header: http.Header{}, Known: known})
}
