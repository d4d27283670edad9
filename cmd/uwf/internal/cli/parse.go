package cli

import (
	"fmt"
	"strconv"
)

// positive reads a decimal number from 1, without signs or other bases.
func positive(s string) (int, error) {
	n, err := natural(s)
	if err == nil && n == 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return n, err
}

// natural reads a decimal number from 0.
func natural(s string) (int, error) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, fmt.Errorf("%q is not a number", s)
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}
