package tempo

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Authenticator data as a node accepts it (WebAuthn Level 2, section 6.1): the hash of the
// relying party's id, a byte of flags and a counter, and nothing more.
const (
	authenticatorSize = 37
	clientDataLeast   = 32
	flagsAt           = 32
	userPresent       = 0x01
	userVerified      = 0x04
	attestedData      = 0x40
	extensionData     = 0x80
)

// webAuthnDigest returns the hash that an authenticator has signed for the digest. data is the
// authenticator's data, then the client's JSON, which must have the digest as its challenge.
// Like the node, it checks neither the relying party nor the counter.
func webAuthnDigest(data []byte, digest chain.Hash) (chain.Hash, error) {
	if len(data) < authenticatorSize+clientDataLeast {
		return chain.Hash{}, errors.New("the WebAuthn data is too short")
	}
	authenticator, client := data[:authenticatorSize], data[authenticatorSize:]
	switch flags := authenticator[flagsAt]; {
	case flags&(userPresent|userVerified) == 0:
		return chain.Hash{}, errors.New("WebAuthn: the user was neither present nor verified")
	case flags&(attestedData|extensionData) != 0:
		return chain.Hash{}, errors.New("WebAuthn: attested or extension data is not taken")
	}
	challenge := base64.RawURLEncoding.EncodeToString(digest[:])
	if err := checkClientData(client, challenge); err != nil {
		return chain.Hash{}, fmt.Errorf("clientDataJSON: %w", err)
	}
	hash := sha256.Sum256(client)
	return sha256.Sum256(append(bytes.Clone(authenticator), hash[:]...)), nil
}

// checkClientData requires that the client's JSON is one object with one "type" and one
// "challenge", written as plain strings. It reads member by member, because json.Unmarshal
// ignores case in names and lets the last of several members win. The node (serde) refuses
// these, so the two would disagree about the signer.
func checkClientData(client []byte, challenge string) error {
	if !json.Valid(client) {
		return errors.New("is not valid JSON")
	}
	d := json.NewDecoder(bytes.NewReader(client))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("is not a JSON object")
	}
	var types, challenges []string
	for d.More() {
		token, _ := d.Token()
		name, isText := token.(string)
		if !isText || strings.ContainsRune(name, utf8.RuneError) {
			return errors.New("a member's name is not valid Unicode")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		switch name {
		case "type":
			types = append(types, string(value))
		case "challenge":
			challenges = append(challenges, string(value))
		}
	}
	switch {
	case !slices.Equal(types, []string{`"webauthn.get"`}):
		return errors.New(`does not hold the type "webauthn.get" once`)
	case !slices.Equal(challenges, []string{`"` + challenge + `"`}):
		return errors.New("does not hold the challenge once")
	}
	return nil
}
