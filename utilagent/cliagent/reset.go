package cliagent

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The ways in which programs say when a limit is reset: seconds since 1970 behind a
// bar, a length of time, or a time of the day.
var (
	resetEpoch = regexp.MustCompile(`\|(\d{10})\b`)
	resetAfter = regexp.MustCompile(`(?i)\b(?:in|after)\s+((?:\d+\s*(?:d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)[\s,and]*)+)`)
	resetPart  = regexp.MustCompile(`(?i)(\d+)\s*([dhms])`)
	resetClock = regexp.MustCompile(`(?i)\bresets?\s+(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*([ap]m)?(?:\s*\(([A-Za-z_]+/[A-Za-z_/]+|UTC)\))?`)
)

// resetIn finds in a message when a limit is reset; the zero time: it does not say.
func resetIn(message string, now time.Time) time.Time {
	if m := resetEpoch.FindStringSubmatch(message); m != nil {
		if at, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			return time.Unix(at, 0)
		}
	}
	if m := resetAfter.FindStringSubmatch(message); m != nil {
		var wait time.Duration
		for _, part := range resetPart.FindAllStringSubmatch(m[1], 4) {
			n, err := strconv.Atoi(part[1])
			if err != nil || n > 1000 {
				return time.Time{}
			}
			wait += time.Duration(n) * map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}[strings.ToLower(part[2])]
		}
		return now.Add(wait)
	}
	if m := resetClock.FindStringSubmatch(message); m != nil && (m[2] != "" || m[3] != "") {
		return onClock(m, now)
	}
	return time.Time{}
}

// onClock is the next time at which a clock shows what a message says.
func onClock(m []string, now time.Time) time.Time {
	hour, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi(m[2])
	switch half := strings.ToLower(m[3]); {
	case half != "" && (hour < 1 || hour > 12), hour > 23, minute > 59:
		return time.Time{}
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	if zone, err := time.LoadLocation(m[4]); err == nil && m[4] != "" {
		now = now.In(zone)
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}
