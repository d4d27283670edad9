package resettime

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

// Messages of real programs and endpoints, and plausible variants.
func TestWhenALimitIsReset(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 3, 40, 18, 0, time.UTC) // a Saturday
	utc := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC) }
	in := func(d time.Duration) time.Time { return now.Add(d) }
	december := time.Date(2026, 12, 1, 3, 40, 0, 0, time.UTC)
	for message, want := range map[string]time.Time{
		// Claude Code
		"Claude AI usage limit reached|1795844298":                                                  time.Unix(1795844298, 0),
		"You've hit your limit · resets 3am (UTC)":                                                  utc(29, 3, 0),
		"You've hit your 5-hour limit · resets 5:38am (UTC)":                                        utc(28, 5, 38),
		"You've hit your weekly limit · resets Dec 1, 3:40am (UTC)":                                 december,
		"You've hit your weekly limit · resets Dec 1 at 3:40am (UTC)":                               december,
		"5-hour limit reached ∙ resets 3pm\n     /upgrade to increase your usage limit.":            utc(28, 15, 0),
		"limit reached ∙ resets Dec 1, 8am (Europe/Zurich)":                                         time.Date(2026, 12, 1, 7, 0, 0, 0, time.UTC),
		"Your limit will reset at 3pm (America/Argentina/Buenos_Aires).":                            utc(28, 18, 0),
		"limit · resets 12am (Etc/GMT+5)":                                                           utc(28, 5, 0),
		"limit · resets 12pm (Asia/Kathmandu)":                                                      utc(28, 6, 15),
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795844298}}`: time.Unix(1795844298, 0),
		// Codex
		"You’ve hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at 5:39 AM.":          utc(28, 5, 39),
		"You've hit your usage limit. Upgrade to Pro (https://openai.com/pricing) or try again at Dec 1st, 2026 3:40 AM.":                        december,
		"You've hit your usage limit. Try again in 3 days 1 hour 2 minutes.":                                                                     in(73*time.Hour + 2*time.Minute),
		"You've hit your usage limit. Try again later.":                                                                                          {},
		`{"error":{"type":"usage_limit_reached","plan_type":"pro","resets_at":1795844298}}`:                                                      time.Unix(1795844298, 0),
		`{"error":{"type":"usage_limit_reached","resets_in_seconds":7200}}`:                                                                      in(2 * time.Hour),
		"Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 1.898s. Visit": in(1898 * time.Millisecond),
		"Please try again in 6m0s.": in(6 * time.Minute),
		"Please try again in 20ms":  in(20 * time.Millisecond),
		// opencode's providers, and Anthropic's API
		"You have exceeded the 5-hour usage quota. It will reset at 2026-12-01 11:40:00 +0800 CST.":            december,
		"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 03:40 UTC.": december,
		"It will reset at 2026-12-01 11:40:00 CST.":                                                            {},
		"It will reset at 2026-12-01 03:40 UTC CST":                                                            {},
		// Gemini CLI, and Google's endpoints
		"You have exhausted your capacity on this model. Your quota will reset after 3h2m1s.":    in(3*time.Hour + 2*time.Minute + time.Second),
		`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.07s"}]`: in(34070 * time.Millisecond),
		`"quotaResetTimeStamp": "2026-12-01T03:40:00Z"`:                                          december,
		"Please retry in 39.5s.": in(39500 * time.Millisecond),
		// headers passed on as text
		"HTTP 429\nretry-after: 120\n":                                      in(2 * time.Minute),
		`"responseHeaders":{"retry-after":"Tue, 01 Dec 2026 03:40:00 GMT"}`: december,
		`{"retryAfterMs":1500}`:                                             in(1500 * time.Millisecond),
		"anthropic-ratelimit-unified-reset: 1795844298":                     time.Unix(1795844298, 0),
		"anthropic-ratelimit-requests-reset: 2026-12-01T03:40:00Z":          december,
		`{"retry_after":-1}`:                                                {},
		`{"resets_at":30}`:                                                  {},
		`{"resets_at":null} try again in 5 minutes`:                         in(5 * time.Minute),
		"Retry after 30 seconds":                                            in(30 * time.Second),
		// durations
		"Please wait 20 seconds before retrying":          in(20 * time.Second),
		"try again in an hour":                            in(time.Hour),
		"try again in about 1.5 hours":                    in(90 * time.Minute),
		"resets in ~2h 5m":                                in(125 * time.Minute),
		"try again in 2 days, 3 hours and 4 minutes":      in(51*time.Hour + 4*time.Minute),
		"Please check back in 5 hours":                    in(5 * time.Hour),
		"Limit reached. Come back after 5 hours":          in(5 * time.Hour),
		"You can use it again at 3:40 PM (UTC+05:30)":     utc(28, 10, 10),
		"limited until Mon, Nov 30 at 9am (Asia/Kolkata)": {},
		"available again in 5 hours.":                     in(5 * time.Hour),
		"try again in 5 hours to continue":                in(5 * time.Hour),
		"try again in 5 minutes and check your plan":      in(5 * time.Minute),
		"resets in **5 hours**":                           in(5 * time.Hour),
		"try again in 99999999999999 hours":               {},
		"try again in 3 months":                           {},
		"try again in 1 month 2 days":                     {},
		"try again in 5-10 minutes":                       {},
		"try again in 5 to 10 minutes":                    {},
		"try again in -5 minutes":                         {},
		"try again in an hour and a half":                 {},
		"try again in a few minutes":                      {},
		"try again in 2 business days":                    {},
		"it reset 5 hours ago":                            {},
		"limit of 50 messages in 3 hours":                 {},
		"request timed out after 30s":                     {},
		// clock times
		"resets 15:00":                       utc(28, 15, 0),
		"resets at 03:30":                    utc(29, 3, 30),
		"resets at 3:40am":                   utc(28, 3, 40), // this minute, not tomorrow
		"resets at 17:30:45 UTC":             utc(28, 17, 30).Add(45 * time.Second),
		"try again at 5\u202fPM":             utc(28, 17, 0),
		"try again at 5 p.m. or upgrade":     utc(28, 17, 0),
		"resets at 12:00 PM":                 utc(28, 12, 0),
		"resets at 12 am":                    utc(29, 0, 0),
		"resets at noon":                     {},
		"daily quota resets at midnight UTC": {},
		"daily quota resets at midnight PT":  {},
		"resets at 17:30+02:00":              utc(28, 15, 30),
		"resets at 17:30 +0530":              utc(28, 12, 0),
		"resets 9pm UTC-5":                   utc(29, 2, 0),
		"resets 9pm GMT+2":                   utc(28, 19, 0),
		"resets 3pm local time":              utc(28, 15, 0),
		"resets 77pm":                        {},
		"resets 13pm":                        {},
		"resets 24:00":                       {},
		"resets 3:75pm":                      {},
		"resets 5":                           {},
		"resets 5.30pm":                      {},
		"resets at 1730":                     {},
		"resets 5pm-6pm":                     {},
		"resets 5pm - 6pm":                   {},
		"resets between 5pm and 6pm":         {},
		// ambiguous zones
		"resets 3am (PST)":             {},
		"resets 3am PST":               {},
		"resets 3am pst":               {},
		"resets 3am CET":               {},
		"resets 3am, PST":              {},
		"resets 3am Pacific Time":      {},
		"resets 3am, Pacific time":     {},
		"resets 3am in Tokyo":          {},
		"resets 3am (Europe/Atlantis)": {},
		"resets 3am (CST6CDT)":         {},
		"resets 3am (EST)":             {},
		"resets 3am (Tokyo)":           {},
		"resets 3am UTC+99":            {},
		"resets 3am GMT+5 EST":         {},
		"resets 3am (UTC) (EST)":       {},
		// dates
		"try again at December 1, 2026 at 3:40 a.m. UTC": december,
		"try again on 1 Dec 2026 03:40 UTC":              {},
		"try again on the 1st of December at 3:40 AM":    {},
		"try again at 3:40 AM UTC on Dec 1":              {},
		"resets 2026-12-01 03:40 UTC":                    december,
		"resets 2026-12-01T04:40:00.123+01:00":           december,
		"resets Tue, Dec 1, 3:40am":                      {},
		"resets Jan 2, 9am":                              time.Date(2027, 1, 2, 9, 0, 0, 0, time.UTC),
		"resets Nov 27, 9am":                             time.Date(2027, 11, 27, 9, 0, 0, 0, time.UTC),
		"try again at Dec 1st, 2025 3:40 AM":             {},
		"resets Wed, Dec 1, 2026, 3:40am":                {},
		"resets Dec 1":                                   {},
		"resets Dec 32, 3am":                             {},
		"resets Feb 30, 3am":                             {},
		"resets Feb 29, 3am":                             {},
		"resets 12/1, 3am":                               {},
		"resets 12/01/2026 3:40 AM":                      {},
		"resets Dez 1, 3:40":                             {},
		"resets 2026-13-01 03:40":                        {},
		"resets 2026-12-01":                              {},
		// weekdays
		"resets Monday 9am":            {},
		"resets on Mon. at 9:00 (UTC)": {},
		"resets Tues 9am":              {},
		"resets Thurs. at 9am":         {},
		"resets Sept 3, 9am":           time.Date(2027, 9, 3, 9, 0, 0, 0, time.UTC),
		"resets Saturday at 3am":       {},
		"resets Saturday at 4am":       {},
		"resets tomorrow at 9am":       {},
		"try again at 9am tomorrow":    {},
		"try again today at 17:00":     {},
		"resets 9am on Monday":         {},
		"try again today at 2am":       {},
		"resets next Monday 9am":       {},
		"resets Monday":                {},
		"resets every day at 3am":      {},
		"resets midnight on Monday":    {},
		// preceding words
		"Sat Nov 28 03:40:18 2026 limit resets at 5am":      utc(28, 5, 0),
		"tomorrow, try again in 5 minutes":                  in(5 * time.Minute),
		"the limit was reset at 5am":                        {},
		"the limit was last reset at 5am":                   {},
		"the model is available again at 5am":               utc(28, 5, 0),
		"The limit was reached, and will be lifted at 5 pm": utc(28, 17, 0),
		// durations that look like clock times
		"try again in 05:00":     {},
		"try again in 1:30:00":   {},
		`{"resets_in":"05:00"}`:  {},
		`{"retry_delay":"0:05"}`: {},
		`{"resets_at":"05:00"}`:  utc(28, 5, 0),
		// several times
		"try again at 5am or at 6am":                              {},
		"resets 5am or 6am":                                       {},
		"resets 5am and 6:30am":                                   {},
		"resets 5am or tomorrow at 6am":                           {},
		"resets 5am or on Monday":                                 {},
		"resets 5am or upgrade":                                   utc(28, 5, 0),
		"try again at 5:39 AM. … try again at 5:39 AM.":           utc(28, 5, 39),
		"5-hour limit resets 5am; weekly limit resets Dec 1, 3am": {},
		"resets 3am (PST). Try again in 2 hours":                  in(2 * time.Hour),
		"429 Too Many Requests":                                   {},
		"":                                                        {},
	} {
		at := In(message, now)
		assert.True(t, want.Equal(at), "%s: %s, not %s", message, at, want)
	}
}

func TestTimeWithoutZoneIsLocal(t *testing.T) {
	t.Parallel()
	tokyo := zone(t, "Asia/Tokyo")
	now := time.Date(2026, 11, 28, 23, 30, 0, 0, tokyo)
	require.Equal(t, time.Date(2026, 11, 29, 5, 39, 0, 0, tokyo), In("try again at 5:39 AM.", now))
	require.Equal(t, time.Date(2026, 11, 29, 8, 0, 0, 0, tokyo), In("resets 8am", now))
	// The date is that of the zone, where it is still the afternoon of the 28th.
	require.True(t, time.Date(2026, 11, 28, 15, 0, 0, 0, time.UTC).Equal(In("resets 3pm (UTC)", now)))
}

func TestSummerTime(t *testing.T) {
	t.Parallel()
	zurich := zone(t, "Europe/Zurich")
	spring := time.Date(2026, 3, 28, 20, 0, 0, 0, zurich) // at 2:00 it becomes 3:00
	autumn := time.Date(2026, 10, 24, 20, 0, 0, 0, zurich)
	require.Equal(t, time.Date(2026, 3, 29, 1, 30, 0, 0, zurich), In("resets 1:30am", spring))
	require.Equal(t, time.Date(2026, 3, 29, 3, 30, 0, 0, zurich), In("resets 3:30am", spring))
	require.Equal(t, time.Date(2026, 10, 25, 3, 30, 0, 0, zurich), In("resets 3:30am", autumn))
	require.Equal(t, spring.Add(8*time.Hour), In("resets in 8 hours", spring))
}

func TestTheEndOfAYear(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Date(2027, 1, 1, 3, 0, 0, 0, time.UTC), In("resets Jan 1, 3am", time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)))
	past := time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC)
	require.Equal(t, past, In("resets Dec 31, 11:59pm", time.Date(2027, 1, 1, 0, 1, 0, 0, time.UTC)), "just now, not in a year")
	require.Equal(t, time.Date(2028, 2, 29, 3, 0, 0, 0, time.UTC), In("resets Feb 29, 3am", time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC)))
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 3, 40, 0, 0, time.UTC)
	for _, c := range []struct {
		headers map[string]string
		want    time.Time
	}{
		{map[string]string{"retry-after": "30"}, now.Add(30 * time.Second)},
		{map[string]string{"retry-after": "2.5", "retry-after-ms": "1500"}, now.Add(1500 * time.Millisecond)},
		{map[string]string{"retry-after": "Sat, 28 Nov 2026 05:40:00 GMT"}, now.Add(2 * time.Hour)},
		{map[string]string{"retry-after": "soon"}, time.Time{}},
		{map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, now.Add(6 * time.Minute)},
		{map[string]string{"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, time.Time{}},
		{map[string]string{"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": "1795844298"}, time.Unix(1795844298, 0)},
		{map[string]string{"anthropic-ratelimit-unified-status": "allowed", "anthropic-ratelimit-unified-reset": "1795844298"}, time.Time{}},
	} {
		h := http.Header{}
		for name, value := range c.headers {
			h.Set(name, value)
		}
		require.True(t, c.want.Equal(Header(h.Get, now)), "%v: %s", c.headers, Header(h.Get, now))
	}
}

// For any text, the result is a time that can be waited for, and only the end of a long text matters.
func FuzzIn(f *testing.F) {
	for _, seed := range []string{
		"resets Dec 1, 3:40am (Europe/Zurich)", "try again in 2 days, 3 hours", "again at 28 Feb 2027 12:00 +0530", `{"retryDelay":"3s"}`,
		"wait until tomorrow noon", "reset: 2026-12-01T03:40:00Z", "resets 1:30 a.m. on Sun", "limit|1795844298", "retry \u202f5\u202fPM UTC+2",
	} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 28, 3, 40, 18, 0, time.FixedZone("x", 3600))
	f.Fuzz(func(t *testing.T, text string) {
		at := In(text, now)
		if left := at.Sub(now); !at.IsZero() && (left < -grace || left > longest) {
			t.Fatalf("%q: %s", text, at)
		}
		if again := In(strings.Repeat("x", maxText)+"\n"+text, now); len(text) < maxText/2 && !again.Equal(at) && at.IsZero() {
			t.Fatalf("%q: %s, and %s behind a long text", text, at, again)
		}
	})
}
