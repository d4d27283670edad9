package extract

import (
	"context"
	"maps"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// take accepts a value that matches the schema. A missing top-level field gets its default from the schema or
// from the matching variant.
func (r Role) take(ctx context.Context, v any) (Output, error) {
	if filled, err := r.filled(ctx, v); filled != nil || err != nil {
		return Output{Value: filled}, err
	}
	problems, err := r.Compiled.Validate(ctx, v)
	if err != nil {
		return Output{}, err
	}
	if problems != nil {
		return Output{}, &InvalidError{Problems: problems}
	}
	return Output{Value: v}, nil
}

// filled returns a copy of the value with the missing defaults, or nil if there are none or the result
// wouldn't match.
func (r Role) filled(ctx context.Context, v any) (any, error) {
	fields, ok := v.(map[string]any)
	schema, _ := r.Schema.(map[string]any)
	if !ok || schema == nil {
		return nil, nil
	}
	missing := map[string]any{}
	if err := addDefaults(ctx, missing, schema, fields); err != nil {
		return nil, err
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		variants, _ := schema[keyword].([]any)
		all, _ := jsonschema.Unfolded(variants)
		name, values := jsonschema.Discriminator(all)
		for i, value := range values {
			if variant, _ := all[i].(map[string]any); sameScalar(fields[name], value) {
				if err := addDefaults(ctx, missing, variant, fields); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	maps.Copy(missing, fields)
	if fits, err := r.fits(ctx, missing); err != nil || !fits {
		return nil, err
	}
	return missing, nil
}

// addDefaults adds the valid defaults for missing fields to missing.
func addDefaults(ctx context.Context, missing, schema, fields map[string]any) error {
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		p, _ := property.(map[string]any)
		fallback, has := p["default"]
		if _, given := fields[name]; !has || given {
			continue
		}
		compiled, err := jsonschema.Compile(p)
		if err != nil {
			continue // an unverifiable default isn't valid
		}
		if fallback, err = jsonValue(fallback); err != nil {
			continue
		}
		problems, err := compiled.Validate(ctx, fallback)
		if err != nil {
			return err
		}
		if problems == nil {
			missing[name] = fallback
		}
	}
	return nil
}
