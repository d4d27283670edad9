// Package figures reads what programs and endpoints say of their use of tokens and money.
// Reading never fails: what makes no sense is not known.
package usageparse

import (
	"math"
	"strconv"
	"strings"
)

// Tokens is a count. What is no number, or makes no sense as a count, is 0.
type Tokens int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *Tokens) UnmarshalJSON(data []byte) error {
	const most = 1 << 53
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64) // 12, 12.0, "12"
	if *n = 0; err == nil && f > 0 && f < most {
		*n = Tokens(f)
	}
	return nil
}

// Dollars is a cost, which may be unknown.
type Dollars struct{ usd *float64 }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Dollars) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if d.usd = nil; err == nil && f >= 0 && !math.IsInf(f, 0) {
		d.usd = &f
	}
	return nil
}

// USD is the cost; nil: nobody knows it.
func (d Dollars) USD() *float64 { return d.usd }
