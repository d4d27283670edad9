package term

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/suggest"
)

var relativeTime = lazyregexp.New(`^([0-9]{1,9})([dhm])$`)

// ParseTime reads the value of --after and --before: "7d", "24h" and "30m" are
// that long before now; else a date or a date and time. As in the original (and
// in JavaScript) a bare ISO date is UTC, and a time without a zone is local.
func ParseTime(s string, now time.Time, local *time.Location) (time.Time, error) {
	s = strings.TrimSpace(s)
	if m := relativeTime().FindStringSubmatch(s); m != nil {
		n, err := Natural(m[1])
		if err == nil {
			unit := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute}[m[2]]
			if d := time.Duration(n) * unit; d/unit == time.Duration(n) {
				return now.Add(-d), nil
			}
		}
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.UTC); err == nil {
		return t, nil
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"January 2 2006", "January 2, 2006", "Jan 2 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006",
	} {
		if t, err := time.ParseInLocation(layout, s, local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, cmdline.UsageError(fmt.Sprintf("invalid time format: %s (expected ISO date or relative like '7d')", s), timeHints(s, now)...)
}

// timeHints are what somebody may have meant, and what can be written.
func timeHints(s string, now time.Time) []string {
	all := "a date such as " + now.Format(time.DateOnly) + ", a time such as " + now.Format("2006-01-02T15:04") + ", or 7d, 24h, 30m for so long ago"
	if near := nearTime(strings.ToLower(s), now); near != "" {
		return []string{"did you mean " + near + "?", all}
	}
	return []string{all}
}

// nearTime is a time that was written in another way: a word, a span with another
// unit or sign, a date with its day first. "" if there is none.
func nearTime(word string, now time.Time) string {
	switch day := now.Format(time.DateOnly); {
	case slices.Contains(suggest.Nearest(word, []string{"today", "now"}, 1), "today"), word == "today", word == "now":
		return day
	case word == "yesterday", len(suggest.Nearest(word, []string{"yesterday"}, 1)) > 0:
		return now.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	for _, layout := range []string{"2.1.2006", "1/2/2006", "2006/1/2", "2006.1.2", "20060102", "2006-1-2", "2-1-2006"} {
		if t, err := time.Parse(layout, word); err == nil {
			return t.Format(time.DateOnly)
		}
	}
	m := regexp.MustCompile(`^-?([0-9]{1,5})\s*([dhmw]?)[a-z]*( ago)?$`).FindStringSubmatch(word)
	switch {
	case m == nil:
		return ""
	case m[2] == "w":
		n, _ := Natural(m[1]) // the expression takes digits only
		return fmt.Sprintf("%dd", 7*n)
	}
	return m[1] + cmp.Or(m[2], "d")
}
