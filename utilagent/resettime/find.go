// Package resettime parses the time at which a provider's limit resets, from text that a program or an
// endpoint printed. It knows the forms that Claude Code, Codex, Gemini CLI, opencode and their endpoints use.
// It never guesses: for any other form, or an ambiguous zone, it returns no time.
package resettime

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

const (
	maxText     = 16 << 10 // a message says it in one line; anything longer is a log
	maxMentions = 32

	// grace allows a time without a date to be in the past, because a message is not read in the second in
	// which it was written.
	grace = 5 * time.Minute
	// same is the tolerance between two mentions of one time: some have no seconds.
	same = 2 * time.Minute
	// longest bounds how far away a reset can be: limits last a month at most, so a longer time is some other
	// number.
	longest = 366 * 24 * time.Hour
)

var (
	// fields matches a field or header with a reset time: its name, its unit, and its value.
	fields = lazyregexp.New(`(?i)\b(retry[-_]?(?:after|delay)|[a-z_-]{0,40}resets?[-_]?(?:at|in|time(?:stamp)?|delay)|` +
		`anthropic-ratelimit-[a-z-]{1,30}-reset)[-_]?(ms|seconds|secs?|s)?["']?[ \t]*[:=][ \t]*["']?([^"'\r\n{}]{1,60})`)
	// epochs matches a time from an older version of Claude Code.
	epochs = lazyregexp.New(`\|(\d{10})\b`)
	// mentions matches the words before a reset time, and the last word that belongs to it.
	mentions = lazyregexp.New(`(?i)\b(?:resets?|lifted|again|retry|wait|back|regain access)\b:?[\s~*]*` +
		`(?:(in|after|for|at|on|about|until)\b[\s~*]*)*`)
	past = lazyregexp.New(`(?i)\b(?:was|were|been|last)\s+$`)

	durations = lazyregexp.New(`(?i)^(?:(?:\d+(?:\.\d+)?|an?\b)\s*(?:` + units + `)(?:,?\s*(?:and\s+)?|$))+`)
	amounts   = lazyregexp.New(`(?i)(\d+(?:\.\d+)?|\ban?\b)\s*(` + units + `)`)
	// points matches a date, the time of day, and a zone. All but the time of day are optional.
	points = lazyregexp.New(`(?i)^(?:([a-z]{3})[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?(?:, (\d{4}))?,?\s+(?:at )?|` +
		`(\d{4}-\d{2}-\d{2})(?:[t ]|\s+at ))?` +
		`(\d{1,2})(?::(\d{2}))?(?::(\d{2})(?:\.\d+)?)?(?:\s*([ap])\.?m\b\.?)?` +
		`(?:\s*\(?((?-i:UTC|GMT|Z)(?:[+-]\d{1,2}(?::?\d{2})?)?\b|` +
		`[a-z][a-z0-9_+-]*(?:/[a-z0-9_+-]+)+|[+-]\d{2}:?\d{2}\b(?-i: [A-Z]{3,5}\b)?)\)?)?`)
	// more matches what gives a time another meaning: a range, another time, or a zone that is not understood.
	more = lazyregexp.New(`^(?:[ \t]*(?:[-–—:+/(][ \t]*[\dA-Za-z]|,?[ \t]*[A-Z]|\d)|[a-z]|` +
		`\s*(?:(?:or|and|to|in)\s+(?:(?:at|on)\s+)?(?:[\dA-Z]|an?\b|half|tomorrow)|(?i:ago|pst|est|cst|on|tomorrow)\b))`)
)

const units = `milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d|weeks?|w`

// In returns the reset time in a text, or the zero time if the text contains none, several, or one that is
// not understood. Fields take precedence over words. A time without a zone is in the zone of now, and one
// without a date is the next one.
func In(text string, now time.Time) time.Time {
	text = strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(text[max(0, len(text)-maxText):])
	var found time.Time
	for _, m := range fields().FindAllStringSubmatch(text, maxMentions) {
		if at := value(m[1], m[2], m[3], now); !at.IsZero() {
			found = at // the latest of several
		}
	}
	if m := epochs().FindStringSubmatch(text); m != nil && found.IsZero() {
		found = epoch(m[1], now)
	}
	if !found.IsZero() {
		return found
	}
	for _, m := range mentions().FindAllStringSubmatchIndex(text, maxMentions) {
		only := m[2] >= 0 && strings.EqualFold(text[m[2]:m[3]], "in")
		at := words(text[m[1]:], only, now)
		switch {
		case at.IsZero() || past().MatchString(text[:m[0]]):
		case found.IsZero():
			found = at
		case at.Sub(found).Abs() > same:
			return time.Time{} // ambiguous
		}
	}
	return found
}

// Header returns the reset time in the headers of a response, which get looks up, or the zero time.
func Header(get func(name string) string, now time.Time) time.Time {
	for _, h := range [][3]string{ // the other header that must be present, and its value
		{"Retry-After-Ms"},
		{"Retry-After"},
		{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests", "0"},
		{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens", "0"},
		{"Anthropic-Ratelimit-Unified-Reset", "Anthropic-Ratelimit-Unified-Status", "rejected"},
	} {
		at := value("", strings.TrimPrefix(h[0], "Retry-After-"), get(h[0]), now)
		if !at.IsZero() && (h[1] == "" || get(h[1]) == h[2]) {
			return at
		}
	}
	return time.Time{}
}

// value parses the value of a field: seconds, milliseconds, a numeric timestamp, a duration or a date.
func value(name, unit, text string, now time.Time) time.Time {
	text, name = strings.Trim(text, " \t,;])"), strings.ToLower(name)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		for _, layout := range []string{time.RFC3339Nano, "Mon, 02 Jan 2006 15:04:05 GMT"} {
			if at, err := time.Parse(layout, text); err == nil {
				return soon(at, now)
			}
		}
		return words(text, strings.HasSuffix(name, "in") || strings.HasSuffix(name, "delay"), now)
	}
	isPoint := strings.HasSuffix(name, "at") || strings.HasSuffix(name, "reset") || strings.Contains(name, "time")
	switch at := epoch(text, now); {
	case !at.IsZero() || isPoint && unit == "":
		return at
	case strings.EqualFold(unit, "ms"):
		n /= 1000
	}
	return after(n, now)
}

// epoch parses seconds or milliseconds since 1970.
func epoch(s string, now time.Time) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	if at := soon(time.Unix(n, 0), now); !at.IsZero() {
		return at
	}
	return soon(time.UnixMilli(n), now)
}

// soon returns a time that can be a reset, or the zero time.
func soon(at, now time.Time) time.Time {
	if left := at.Sub(now); left <= -grace || left > longest {
		return time.Time{}
	}
	return at
}

// after returns the time some seconds from now.
func after(seconds float64, now time.Time) time.Time {
	if !(seconds >= 0 && seconds <= longest.Seconds()) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}

// words parses a duration, such as "2 hours and 5 minutes" or "1h2m3.5s", or a point in time, such as "Dec 1,
// 3:40am (Europe/Zurich)", at the beginning of a text. only means that it is not a point in time: "in 5:00".
func words(text string, only bool, now time.Time) time.Time {
	if span := strings.TrimRight(durations().FindString(text), ", \t"); span != "" && !more().MatchString(text[len(span):]) {
		return after(seconds(span), now)
	}
	m := points().FindStringSubmatch(text)
	if only || m == nil || m[6]+m[8] == "" || more().MatchString(text[len(m[0]):]) { // a bare number is no time
		return time.Time{}
	}
	return point(m, now)
}

// seconds returns the length of a duration.
func seconds(span string) (sum float64) {
	for _, m := range amounts().FindAllStringSubmatch(span, -1) {
		unit := strings.ToLower(m[2])
		one := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 24 * 3600, 'w': 7 * 24 * 3600}[unit[0]]
		if unit == "ms" || strings.HasPrefix(unit, "mil") {
			one = 0.001
		}
		count, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			count = 1 // "an hour"
		}
		sum += count * one
	}
	return sum
}

// point returns the next time that fits the groups of a match of points.
func point(m []string, now time.Time) time.Time {
	month, day, year, date, half, zone := m[1], m[2], m[3], m[4], m[8], now.Location()
	clock, err := time.Parse("15:4:5", m[5]+":"+cmp.Or(m[6], "0")+":"+cmp.Or(m[7], "0"))
	if half != "" {
		clock, err = time.Parse("3:4:5pm", m[5]+":"+cmp.Or(m[6], "0")+":"+cmp.Or(m[7], "0")+strings.ToLower(half)+"m")
	}
	if m[9] != "" && err == nil {
		zone, err = zoneOf(strings.Fields(m[9])[0]) // without the name that Go prints behind an offset
	}
	if err != nil {
		return time.Time{}
	}
	on := func(d time.Time) time.Time {
		return time.Date(d.Year(), d.Month(), d.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, zone)
	}
	today := now.In(zone)
	switch {
	case date != "":
		d, err := time.Parse(time.DateOnly, date)
		if err != nil {
			return time.Time{}
		}
		return soon(on(d), now)
	case month != "":
		for _, y := range []int{today.Year() - 1, today.Year(), today.Year() + 1} {
			d, err := time.Parse("Jan 2 2006", month+" "+day+" "+cmp.Or(year, strconv.Itoa(y)))
			if at := soon(on(d), now); err == nil && !at.IsZero() {
				return at
			}
		}
		return time.Time{}
	}
	for n := -1; n <= 1; n++ {
		if at := soon(on(today.AddDate(0, 0, n)), now); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// zoneOf returns the location for a name in the zone database, UTC, or an offset. Abbreviations such as CST are
// ambiguous, so they are rejected.
func zoneOf(name string) (*time.Location, error) {
	offset := strings.TrimPrefix(strings.TrimPrefix(name, "UTC"), "GMT")
	if offset == "" || name == "Z" {
		return time.UTC, nil
	}
	if len(offset) == 2 || len(offset) > 2 && offset[2] == ':' {
		offset = offset[:1] + "0" + offset[1:]
	}
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if at, err := time.Parse(layout, offset); err == nil {
			return at.Location(), nil
		}
	}
	return time.LoadLocation(name)
}
