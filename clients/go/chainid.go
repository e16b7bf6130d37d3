package watchtower

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// ChainID names a chain: the number of an EVM chain in decimal, such as "42431", or a CAIP-2
// text, such as "near:mainnet".
type ChainID string

// EVM is the chain with a number, as eth_chainId returns it.
func EVM(number uint64) ChainID { return ChainID(strconv.FormatUint(number, 10)) }

// Number is the number of an EVM chain; ok is false for a chain that is named by a text.
func (c ChainID) Number() (number uint64, ok bool) {
	number, err := strconv.ParseUint(string(c), 10, 64)
	return number, err == nil
}

// MarshalJSON writes a number if the chain has one, and a text otherwise.
func (c ChainID) MarshalJSON() ([]byte, error) {
	if number, ok := c.Number(); ok {
		return strconv.AppendUint(nil, number, 10), nil
	}
	return json.Marshal(string(c))
}

// UnmarshalJSON reads a number or a text.
func (c *ChainID) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		return json.Unmarshal(text, (*string)(c))
	}
	var number uint64
	if err := json.Unmarshal(text, &number); err != nil {
		return err
	}
	*c = EVM(number)
	return nil
}
