package term

import (
	"fmt"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/cmdline"
)

// NumberFlag reads a flag whose value is a number from least on; example is what
// to type otherwise. Such flags are strings to the library, whose own number flag
// takes 010 and 0x10.
func NumberFlag(c *ucli.Context, name string, least, example int) (int, error) {
	text := c.String(name)
	n, err := Natural(text)
	if err == nil && n >= least {
		return n, nil
	}
	want := "non-negative"
	if least > 0 {
		want = "positive"
	}
	message := fmt.Sprintf("--%s must be a %s integer, got: %s", name, want, text)
	if near := NearNumber(text); near >= least {
		return 0, cmdline.UsageError(message, fmt.Sprintf("did you mean --%s %d?", name, near))
	}
	return 0, cmdline.UsageError(message, fmt.Sprintf("--%s %d", name, example))
}

// NearNumber is the number that somebody has written another way, such as 4k,
// 1_000 or 1e3; -1 if there is none.
func NearNumber(text string) int {
	const most = 1 << 31
	plain := strings.NewReplacer("_", "", ",", "", "'", "", " ", "").Replace(strings.ToLower(text))
	times := 1.0
	if cut, thousands := strings.CutSuffix(plain, "k"); thousands {
		plain, times = cut, 1000
	}
	n, err := strconv.ParseFloat(plain, 64)
	if err != nil || !(n*times >= 0 && n*times <= most) {
		return -1
	}
	return int(n * times)
}

// Positive reads a decimal number from 1, without signs or other bases.
func Positive(s string) (int, error) {
	n, err := Natural(s)
	if err == nil && n == 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return n, err
}

// Natural reads a decimal number from 0.
func Natural(s string) (int, error) {
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
