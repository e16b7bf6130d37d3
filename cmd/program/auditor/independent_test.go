package auditor_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// independent checks an exported log against its links and seals. It follows docs/howto/audit.md and
// calls no code of the product.
func independent(export []byte, key [32]byte) (found []string) {
	type stream struct {
		version uint64
		link    []byte
		linked  bool
	}
	streams := map[string]stream{}
	running := make([]byte, 32)
	hashes := map[uint64]string{} // by position: the hash and the count
	count := 0
	for line := range bytes.Lines(export) {
		var e struct {
			Position, Version            uint64
			Stream, At, ID, Name         string
			Data                         json.RawMessage
			Raw                          *string
			Meta                         map[string]string
			correlation, causation, link []byte
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return append(found, err.Error())
		}
		if e.Raw != nil {
			raw, err := base64.StdEncoding.DecodeString(*e.Raw)
			if err != nil {
				return append(found, err.Error())
			}
			e.Data = raw
		}
		last := streams[e.Stream]
		previous := last.link
		stored, _ := hex.DecodeString(e.Meta["link"])
		kind := "watchtower.audit.leaf.v1"
		if len(stored) == 0 || previous == nil {
			previous = make([]byte, 32)
		}
		if len(stored) == 0 {
			kind = "watchtower.audit.leaf.unlinked.v1"
		}
		link := digest("watchtower.event.link.v1", previous, e.Stream, e.Version, uuid(e.ID), e.Name, []byte(e.Data),
			uuid(e.Meta["correlation"]), uuid(e.Meta["causation"]), e.Meta["actor"], e.Meta["trace"])
		switch {
		case e.Stream == "" || e.Version != last.version+1:
			found = append(found, fmt.Sprintf("position %d: version %d", e.Position, e.Version))
		case len(stored) > 0 && !bytes.Equal(stored, link):
			found = append(found, fmt.Sprintf("position %d: link", e.Position))
		case len(stored) == 0 && last.linked:
			found = append(found, fmt.Sprintf("position %d: no link", e.Position))
		}
		if len(stored) > 0 {
			link = stored
		}
		streams[e.Stream] = stream{e.Version, link, last.linked || len(stored) > 0}
		at, err := time.Parse(time.RFC3339Nano, e.At)
		if err != nil {
			return append(found, err.Error())
		}
		leaf := digest(kind, e.Position, e.Stream, e.Version, link, uint64(at.UnixMicro()))
		running = digest("watchtower.audit.run.v1", running, leaf)
		count++
		hashes[e.Position] = fmt.Sprintf("%x %d", running, count)
		if e.Stream == "audit-seals" {
			if why := sealFault(e.Data, key, hashes); why != "" {
				found = append(found, fmt.Sprintf("position %d: %s", e.Position, why))
			}
		}
	}
	return found
}

// sealFault describes the fault of a seal; empty if there is none.
func sealFault(data []byte, key [32]byte, hashes map[uint64]string) string {
	var s struct {
		Since, Through, Count uint64
		Hash, At              string
		Marks                 []byte
		Key, Signature        string
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return err.Error()
	}
	hash, _ := hex.DecodeString(s.Hash)
	signature, _ := hex.DecodeString(s.Signature)
	at, _ := time.Parse(time.RFC3339Nano, s.At)
	marks := sha256.Sum256(s.Marks)
	message := fields("watchtower.audit.seal.v1", s.Since, s.Through, s.Count, hash, marks[:], uint64(at.UnixMicro()), key[:])
	switch {
	case s.Key != hex.EncodeToString(key[:]) || !ed25519.Verify(key[:], message, signature):
		return "signature"
	case hashes[s.Through] != fmt.Sprintf("%x %d", hash, s.Count):
		return fmt.Sprintf("the log up to position %d", s.Through)
	}
	return ""
}

func digest(content ...any) []byte {
	sum := sha256.Sum256(fields(content...))
	return sum[:]
}

// fields concatenates the values, each preceded by its length.
func fields(content ...any) (b []byte) {
	for _, c := range content {
		var field []byte
		switch c := c.(type) {
		case string:
			field = []byte(c)
		case []byte:
			field = c
		case uint64:
			field = binary.BigEndian.AppendUint64(nil, c)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	return b
}

func uuid(text string) []byte {
	if text == "" {
		return make([]byte, 16)
	}
	id, _ := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	return id
}
