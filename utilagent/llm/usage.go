package llm

import (
	"math"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// wireUsage is what endpoints say about tokens, under all the names in use.
type wireUsage struct {
	Prompt     tokens `json:"prompt_tokens"`
	Completion tokens `json:"completion_tokens"`
	Cached     tokens `json:"cached_tokens"`           // Moonshot
	CacheHit   tokens `json:"prompt_cache_hit_tokens"` // DeepSeek
	CacheWrite tokens `json:"cache_write_tokens"`
	CacheMade  tokens `json:"cache_creation_input_tokens"` // LiteLLM, for Anthropic's models
	PromptMore struct {
		Cached     tokens `json:"cached_tokens"`
		CacheWrite tokens `json:"cache_write_tokens"`
		CacheMade  tokens `json:"cache_creation_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore struct {
		Reasoning tokens `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cost dollars `json:"cost"` // OpenRouter
}

// tokens is a count. Decoding it never fails: what is no number, or makes no sense
// as a count, is 0.
type tokens int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *tokens) UnmarshalJSON(data []byte) error {
	const most = 1 << 53
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64) // 12, 12.0, "12"
	if *n = 0; err == nil && f > 0 && f < most {
		*n = tokens(f)
	}
	return nil
}

// dollars is a cost; nil where there is none. Decoding it never fails.
type dollars struct{ value *float64 }

// UnmarshalJSON implements json.Unmarshaler.
func (d *dollars) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if d.value = nil; err == nil && f >= 0 && !math.IsInf(f, 0) {
		d.value = &f
	}
	return nil
}

// usage counts every token once: endpoints report the cached ones as part of
// the prompt.
func (w *wireUsage) usage() protocol.Usage {
	u := protocol.Usage{Turns: 1}
	if w == nil {
		return u
	}
	read := max(w.PromptMore.Cached, w.CacheHit, w.Cached)
	write := max(w.PromptMore.CacheWrite, w.PromptMore.CacheMade, w.CacheWrite, w.CacheMade)
	u.CacheReadTokens, u.CacheWriteTokens = int64(read), int64(write)
	u.InputTokens = int64(max(w.Prompt-read-write, 0))
	u.OutputTokens = int64(w.Completion)
	u.ReasoningTokens = int64(w.CompletionMore.Reasoning)
	u.CostUSD = w.Cost.value
	return u
}

// usage is what a reply cost: as the endpoint says, else by the config's price.
func (c *Client) usage(w *wireUsage) protocol.Usage {
	u := w.usage()
	return u.Priced(c.endpoint.Price)
}
