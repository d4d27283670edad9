package errorkind

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Kind{
		"No conversation found with session ID: 9":                     SessionNotFound,
		"Error: Session ID 1 is already in use.":                       SessionInUse,
		"Not inside a trusted directory and --skip-…":                  UntrustedDir,
		"API Error: 429 rate_limit_error":                              RateLimit,
		"You exceeded your current quota":                              Quota,
		"You've hit your limit · resets 3am (UTC)":                     Quota,
		"You've hit your 5-hour limit · resets 5am":                    Quota,
		"You have exhausted your daily quota on this model.":           Quota,
		"You've hit your weekly limit":                                 Quota,
		"You've reached your Opus 5.5 weekly limit":                    Quota,
		"overloaded_error: Overloaded":                                 RateLimit,
		"Selected model is at capacity. Please try a different model.": RateLimit,
		"529 {}":                             RateLimit,
		"Not logged in · Please run /login":  Auth,
		"unexpected status 401 Unauthorized": Auth,
		"prompt is too long: 210000 tokens":  Context,
		"error: unknown option '--nope'":     BadUsage,
		"connect ECONNREFUSED 127.0.0.1:1":   Server,
		"503 Service Unavailable":            Server,
		"API Error: 400 invalid":             BadRequest,
		"what a nice day":                    Unknown,

		// from public reports
		"5-hour limit reached ∙ resets 1am":                                                               Quota,
		"Opus weekly limit reached ∙ resets Oct 10, 3pm":                                                  Quota,
		"You're out of extra usage · resets 3pm (UTC)":                                                    Quota,
		"Spending cap reached resets 8pm":                                                                 Quota,
		"You have exceeded the 5-hour usage quota. It will reset at 2026-07-30 16:11:46 +0800 CST.":       Quota,
		"Free usage exceeded, subscribe to Go":                                                            Quota,
		"You have exceeded your premium request allowance.":                                               Quota,
		"Resource has been exhausted (e.g. check quota).":                                                 RateLimit,
		"Resource exhausted. Please try again later. RESOURCE_EXHAUSTED":                                  RateLimit,
		"No capacity available for model gemini-2.5-pro on the server":                                    RateLimit,
		"ThrottlingException: Too many tokens, please wait before trying again.":                          RateLimit,
		"maximum context: too many tokens":                                                                Context,
		"Failed to authenticate: OAuth session expired and could not be refreshed":                        Auth,
		"OAuth token has expired. Please obtain a new token or refresh your existing token.":              Auth,
		"Your access token could not be refreshed because it was used. Please log out and sign in again.": Auth,
		"This organization has been disabled.":                                                            Auth,
		"bash: the time limit was reached":                                                                Unknown,
		"the session expired":                                                                             Unknown,
		"ENOSPC: no space left, memory exhausted":                                                         Unknown,
		"the limit of open files is out of range":                                                         Unknown,
	} {
		require.Equal(t, want, OfText(text), text)
	}
	require.Equal(t, Auth, OfStatus(401))
	require.Equal(t, Quota, OfStatus(402))
	require.Equal(t, RateLimit, OfStatus(429))
	require.Equal(t, RateLimit, OfStatus(529))
	require.Equal(t, BadRequest, OfStatus(404))
	require.Equal(t, Unknown, OfStatus(0))

	require.Equal(t, RateLimit, Of(529, "x"))
	require.Equal(t, RateLimit, Of(0, "API Error: 529 Overloaded"))
	require.Equal(t, RateLimit, Of(503, "The model is overloaded. Please try again later."))
	require.Equal(t, Server, Of(500, "Internal server error"))
	require.Equal(t, Context, Of(400, "prompt is too long: 210000 tokens"))
	require.Equal(t, Quota, Of(429, "You've hit your 5-hour limit"))
	require.Equal(t, RateLimit, Of(429, "rate limit"))
	require.Equal(t, Auth, Of(401, "429"))
}
