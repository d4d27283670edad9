package llm

import (
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/figures"
)

// wireUsage is what endpoints say about tokens, under all the names in use.
type wireUsage struct {
	Total      figures.Tokens `json:"total_tokens"`
	Prompt     figures.Tokens `json:"prompt_tokens"`
	Completion figures.Tokens `json:"completion_tokens"`
	Cached     figures.Tokens `json:"cached_tokens"`           // Moonshot
	CacheHit   figures.Tokens `json:"prompt_cache_hit_tokens"` // DeepSeek
	CacheWrite figures.Tokens `json:"cache_write_tokens"`
	CacheMade  figures.Tokens `json:"cache_creation_input_tokens"` // LiteLLM, for Anthropic's models
	PromptMore struct {
		Cached     figures.Tokens `json:"cached_tokens"`
		CacheWrite figures.Tokens `json:"cache_write_tokens"`
		CacheMade  figures.Tokens `json:"cache_creation_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore struct {
		Reasoning figures.Tokens `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cost figures.Dollars `json:"cost"` // OpenRouter
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
	// Google and xAI count reasoning apart, and only the total tells.
	if rest := int64(w.Total - w.Prompt - w.Completion); rest > 0 && (rest == u.ReasoningTokens || u.ReasoningTokens+int64(read+write) == 0) {
		u.OutputTokens, u.ReasoningTokens = u.OutputTokens+rest, rest
	}
	u.CostUSD = w.Cost.USD()
	return u
}

// usage is what a reply cost: as the endpoint says, else by the config's price.
func (c *Client) usage(w *wireUsage) protocol.Usage {
	u := w.usage()
	return u.Priced(c.endpoint.Price)
}
