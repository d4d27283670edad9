package extract

import (
	"context"
	"maps"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// take takes a value that satisfies the schema. A field at its top that it lacks gets the default that the
// schema has for it, or the variant of the schema that the value is.
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

// filled is a value with the defaults that it lacks; nil: it lacks none, or does not fit with them.
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

// addDefaults adds to missing the valid defaults of an object's schema for what fields lack.
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
			continue // what cannot be checked is not valid
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
