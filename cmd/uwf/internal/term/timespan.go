package term

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/cmdline"
)

// TimeoutFlag is --timeout. It is a string flag, because the library's own says no
// more of a mistake than "parse error".
func TimeoutFlag(usage string) ucli.Flag {
	return &ucli.StringFlag{Name: "timeout", Usage: usage + ", such as 90s, 30m or 2h; a bare number is seconds"}
}

// TimeoutOf reads --timeout; 0 if it was not given.
func TimeoutOf(c *ucli.Context) (time.Duration, error) { return SpanOf(c, "timeout") }

// SpanOf reads a flag that is a length of time; 0 if it was not given.
func SpanOf(c *ucli.Context, flag string) (time.Duration, error) {
	if !c.IsSet(flag) {
		return 0, nil
	}
	text := c.String(flag)
	d, err := time.ParseDuration(text)
	if n, numberErr := Positive(text); numberErr == nil { // as in the original
		d, err = time.Duration(n)*time.Second, nil
	}
	if err == nil && d > 0 {
		return d, nil
	}
	message := fmt.Sprintf("--%s must be a time such as 90, 90s, 30m or 2h, got %q", flag, text)
	if near := nearSpan(text); near != "" && near != text {
		return 0, cmdline.UsageError(message, "did you mean --"+flag+" "+near+"?")
	}
	return 0, cmdline.UsageError(message, "--"+flag+" 30m")
}

// nearSpan is the length of time that somebody has written in words.
func nearSpan(text string) string {
	if _, err := time.ParseDuration(text + "m"); err == nil && strings.Contains(text, "h") {
		return text + "m" // 1h30
	}
	m := regexp.MustCompile(`(?i)^\s*([0-9]+(?:\.[0-9]+)?)\s*(s|m|h|d)[a-z]*\s*$`).FindStringSubmatch(text)
	switch {
	case m == nil:
		return ""
	case m[2] == "d" || m[2] == "D":
		if n, err := Natural(m[1]); err == nil && n < 10000 {
			return fmt.Sprintf("%dh", 24*n)
		}
		return ""
	}
	return m[1] + string(m[2][0]|0x20) // in lower case
}
