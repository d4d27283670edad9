// Package usageparse decodes token and cost figures from programs and endpoints. Decoding never fails:
// invalid values count as unknown.
package usageparse

import (
	"math"
	"strconv"
	"strings"
)

// Tokens is a token count. Invalid values decode to 0.
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

// USD returns the cost, or nil if it is unknown.
func (d Dollars) USD() *float64 { return d.usd }
