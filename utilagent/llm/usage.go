package llm

import "github.com/united-workforce/uwf/protocol"

// wireUsage is what endpoints say about tokens, under all the names in use.
type wireUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Cached     int64 `json:"cached_tokens"`           // Moonshot
	CacheHit   int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	CacheWrite int64 `json:"cache_write_tokens"`
	PromptMore struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cost *float64 `json:"cost"` // OpenRouter, US dollars
}

// usage counts every token once: endpoints report the cached ones as part of
// the prompt.
func (w *wireUsage) usage() protocol.Usage {
	u := protocol.Usage{Turns: 1}
	if w == nil {
		return u
	}
	read := max(w.PromptMore.Cached, w.CacheHit, w.Cached, 0)
	write := max(w.PromptMore.CacheWrite, w.CacheWrite, 0)
	u.CacheReadTokens, u.CacheWriteTokens = read, write
	u.InputTokens = max(w.Prompt-read-write, 0)
	u.OutputTokens = max(w.Completion, 0)
	u.ReasoningTokens = max(w.CompletionMore.Reasoning, 0)
	if w.Cost != nil && *w.Cost >= 0 {
		u.CostUSD = w.Cost
	}
	return u
}

// usage is what a reply cost: as the endpoint says, else by the config's price.
func (c *Client) usage(w *wireUsage) protocol.Usage {
	u := w.usage()
	p := c.endpoint.Price
	if w == nil || p == nil || u.CostUSD != nil {
		return u
	}
	read, write := p.Input, p.Input
	if p.CacheRead != nil {
		read = *p.CacheRead
	}
	if p.CacheWrite != nil {
		write = *p.CacheWrite
	}
	const million = 1e6
	cost := (float64(u.InputTokens)*p.Input + float64(u.CacheReadTokens)*read +
		float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*p.Output) / million
	u.CostUSD = &cost
	return u
}
