package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// listTime is how long the list of models may take: it is for a person who
	// waits.
	listTime = 15 * time.Second
	// maxList bounds the list; some routers offer hundreds of models.
	maxList = 16 << 20
)

// Models lists the models that the endpoint says it has, sorted. Not every
// endpoint has such a list. Errors are [*Error], or the cause of ctx's end.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, listTime, errIdle)
	defer stop()
	u, err := endpointURL(c.endpoint.BaseURL)
	if err != nil {
		return nil, c.describe(&Error{Kind: KindBadRequest, Message: err.Error()}, 1)
	}
	u.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "chat/completions"), "/") + "/models"
	u.RawPath = ""
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, c.describe(&Error{Kind: KindBadRequest, Message: c.mask(err.Error())}, 1)
	}
	r.Header.Set("Accept", "application/json")
	c.identify(r)
	res, err := c.http.Do(r)
	if err != nil {
		return nil, c.listError(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	if err != nil {
		return nil, c.listError(ctx, err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, c.describe(c.httpError(res.StatusCode, res.Header, body[:min(len(body), maxErrorBody)]), 1)
	}
	names, err := modelNames(body)
	if err != nil {
		return nil, c.describe(&Error{Kind: KindBadRequest, Message: err.Error()}, 1)
	}
	return names, nil
}

// listError explains why there is no list.
func (c *Client) listError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errIdle) {
		return cause
	}
	if e, ok := errors.AsType[*Error](c.transportError(ctx, err)); ok {
		return c.describe(e, 1)
	}
	return err
}

// modelNames reads {"data": [{"id": …}]}, as OpenAI has it; some servers leave
// the outer object out, or say "models" and "name".
func modelNames(body []byte) ([]string, error) {
	type model struct{ ID, Name string }
	var list struct{ Data, Models []model }
	if json.Unmarshal(body, &list) != nil {
		if err := json.Unmarshal(body, &list.Data); err != nil {
			return nil, errors.New("the list of models is not JSON")
		}
	}
	var names []string
	for _, m := range append(list.Data, list.Models...) {
		// Gemini's compatible endpoint lists "models/…" and takes the rest.
		if name := strings.TrimPrefix(m.ID, "models/"); name != "" {
			names = append(names, name)
		} else if m.Name != "" {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
