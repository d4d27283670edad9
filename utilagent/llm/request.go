package llm

// encode writes the body of a request. Equal conversations give equal bytes, so
// that a provider's prompt cache hits.
func (c *Client) encode(req Request, q quirks) (*body, error) {
	before, now := c.cache.Load(), &written{q: q}
	marked := !q.noMarks && len(req.Tools) > 0 // without tools a question is asked once: writing to a cache costs
	messages, err := c.wireMessages(req.Messages, marked, before, now)
	if err != nil {
		return nil, err
	}
	if len(req.Tools) > 0 {
		if now.tools, err = before.declared(req.Tools); err != nil {
			return nil, err
		}
	}
	fields, err := marshal(c.fields(req, q))
	if err != nil {
		return nil, err
	}
	c.cache.Store(now)
	return newBody(messages, now.tools.wire, fields), nil
}

// fields are those of a request but messages and tools.
func (c *Client) fields(req Request, q quirks) map[string]any {
	m := map[string]any{"model": c.endpoint.Model, "stream": !q.noStream}
	if !q.noStream && !q.noStreamOptions {
		m["stream_options"] = map[string]any{"include_usage": true}
	}
	if len(req.Tools) > 0 && !q.noToolChoice {
		m["tool_choice"] = choice(req)
	}
	if req.JSON && !q.noJSONMode {
		m["response_format"] = map[string]any{"type": "json_object"}
	}
	return m
}

func choice(req Request) any {
	switch {
	case req.NoCalls:
		return "none"
	case req.Force != "":
		return map[string]any{"type": "function", "function": map[string]any{"name": req.Force}}
	}
	return "auto"
}

func wireTools(tools []Tool) []any {
	list := make([]any, 0, len(tools))
	for _, t := range tools {
		list = append(list, map[string]any{"type": "function", "function": map[string]any{
			"name": t.Name, "description": t.Description, "parameters": t.Parameters,
		}})
	}
	return list
}
