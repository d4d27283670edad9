// Package resettime reads when a provider's limit is reset, from what a program or an endpoint has
// written. It is the only reader of such times. What it does not understand in every part, such as an
// unknown zone, is no time: it never guesses.
package resettime

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	maxText     = 16 << 10 // a message says it in one line; more is a log
	maxMentions = 32
	nearby      = 100 // bytes before a mention that can change it: part of a sentence

	// grace is how long ago a time without its date can be: the message is not read in the
	// second in which it was written.
	grace = 5 * time.Minute
	// same is how far apart two mentions of one time can be: some have no seconds.
	same = 2 * time.Minute
)

// fields are names of fields and headers, and mentions are words, after which such a time stands.
const (
	fields = `(?i)\b(retry[-_]?after|retry[-_]?delay|[a-z_-]{0,40}resets?[-_]?(?:at|in|time(?:stamp)?|delay)|anthropic-ratelimit-[a-z-]{1,30}-reset)` +
		`[-_]?(ms|seconds|secs?|s)?["']?[ \t]*[:=][ \t]*["']?([^"'\r\n{}]{1,60})`
	mentions = `(?i)\b(resets?|renew(?:s|ed)?|refresh(?:es|ed)?|regain[ \t]+access|lifted|again|retry|wait|until|(?:available|valid|access)[ \t]+until|available|back)\b`
	epochs   = `\|(\d{10})\b` // of older versions of Claude Code
	// others are mentions of another time: "was reset at", "available until".
	others = `(?i)\b(?:(?:last|was|were|been)[ \t]+[a-z]+|(not[ \t]+)?(?:available|valid|access)[ \t]+until)$`
	// dayBefore is a day that a clock behind a mention can be of: "on Monday it resets at".
	dayBefore = `(?i)\b(?:` + dayWords + `|` + months + `[ \t]*\d{1,2}(?:st|nd|rd|th)?)\b[^.;·|\d\r\n]{0,60}$`
	dayWords  = `tomorrow|(?:sun|mon|tues|wednes|thurs|fri|satur)day`
	months    = `(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b\.?`
)

// In returns when a limit is reset by a text; the zero time: the text names no time, several, or
// one that is not understood. Named fields come before words. A time without a zone is in that of now,
// and one without its day is the next one.
func In(text string, now time.Time) time.Time {
	text = strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(text[max(0, len(text)-maxText):])
	var found time.Time
	for _, m := range regexp.MustCompile(fields).FindAllStringSubmatch(text, maxMentions) {
		if at := value(m[1], m[2], m[3], now); !at.IsZero() {
			found = at // the newest of several
		}
	}
	if m := regexp.MustCompile(epochs).FindStringSubmatch(text); m != nil && found.IsZero() {
		found = epoch(m[1], now)
	}
	if !found.IsZero() {
		return found
	}
	for _, m := range regexp.MustCompile(mentions).FindAllStringIndex(text, maxMentions) {
		r := reader{rest: text[m[1]:], now: now, span: strings.EqualFold(text[m[0]:m[1]], "wait")}
		switch at := r.when(); {
		case at.IsZero() || r.elsewhere(text[max(0, m[0]-nearby):m[0]], text[m[0]:m[1]]):
		case found.IsZero():
			found = at
		case at.Sub(found).Abs() > same:
			return time.Time{} // which one counts is not known
		}
	}
	return found
}

// elsewhere reports whether a mention, or what stands before it, makes its time another one.
func (r *reader) elsewhere(before, mention string) bool {
	if m := regexp.MustCompile(others).FindStringSubmatch(before + mention); m != nil && m[1] == "" {
		return true
	}
	return len(r.named) > 0 && len(r.days) == 0 && regexp.MustCompile(dayBefore).MatchString(before)
}

// Header returns when a limit is reset by the headers of an answer, which get looks up; the zero time: they
// don't say.
func Header(get func(name string) string, now time.Time) time.Time {
	for _, h := range [][3]string{ // and which other one must say what
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

// value reads the value of a field: seconds, milliseconds, a point in time as a number, or words.
func value(name, unit, text string, now time.Time) time.Time {
	r := reader{rest: text, now: now, span: true, only: regexp.MustCompile(`(?i)(in|delay)$`).MatchString(name)}
	number := r.match(`-?\d+(?:\.\d+)?`)
	if number == "" || r.match(`[^ \t,;\])]`) != "" {
		r.rest = text
		return r.when()
	}
	n, err := strconv.ParseFloat(number, 64)
	if at := epoch(number, now); err != nil || !at.IsZero() {
		return at
	}
	isPoint := regexp.MustCompile(`(?i)(at|reset|time(stamp)?)$`).MatchString(name)
	switch {
	case isPoint && unit == "", n < 0:
		return time.Time{}
	case strings.EqualFold(unit, "ms"):
		n /= 1000
	}
	return after(n, now)
}

// epoch reads seconds or milliseconds since 1970, if they name a time within a year.
func epoch(s string, now time.Time) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	for _, at := range []time.Time{time.Unix(n, 0), time.UnixMilli(n)} {
		if left := at.Sub(now); left > -grace && left <= longest {
			return at
		}
	}
	return time.Time{}
}

// longest is how far away a reset can be: limits are of a month at most, and a longer time is another number.
const longest = 366 * 24 * time.Hour

// after returns the time some seconds from now.
func after(seconds float64, now time.Time) time.Time {
	if !(seconds >= 0 && seconds <= longest.Seconds()) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}
