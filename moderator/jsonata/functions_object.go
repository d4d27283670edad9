package jsonata

// keys lists the keys of an object, or of all objects in an array, each once.
func (c *call) keys() (any, error) {
	out := &list{seq: true}
	return out, c.addKeys(out, map[string]bool{}, c.args[0], 1)
}

func (c *call) addKeys(out *list, seen map[string]bool, v any, depth int) error {
	if err := c.deep(depth); err != nil {
		return err
	}
	if l, ok := listOf(v); ok {
		for i := range l.len() {
			if err := c.spend(1); err != nil {
				return err
			}
			if err := c.addKeys(out, seen, l.item(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	keys, _ := keysOf(v)
	if err := c.spend(stepsPerKey * len(keys)); err != nil {
		return err
	}
	for _, k := range keys {
		if seen[k] {
			continue
		}
		seen[k] = true
		if err := c.push(out, k); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) lookup() (any, error) {
	if c.missing(1) {
		return undefined{}, nil
	}
	return c.e.field(c.args[0], c.textArg(1), c.where)
}

// merge makes one object of many; the last value of a key wins.
func (c *call) merge() (any, error) {
	out := &Object{}
	l := asList(c.args[0])
	for i := range l.len() {
		o := l.item(i)
		keys, _ := keysOf(o)
		if err := c.grow(len(keys)); err != nil {
			return nil, err
		}
		if err := c.spend(1 + stepsPerKey*len(keys)); err != nil {
			return nil, err
		}
		for _, k := range keys {
			out.Set(k, member(o, k))
		}
	}
	return out, nil
}

// spread makes an object of each member.
func (c *call) spread() (any, error) {
	v := c.args[0]
	if k := kindOf(v); k != 'a' && k != 'o' {
		return v, nil
	}
	// Of an array it is an array, even if it has one item.
	l, isArray := listOf(v)
	out := &list{seq: !isArray || l.len() == 0}
	return out, c.spreadInto(out, v, 1)
}

func (c *call) spreadInto(out *list, v any, depth int) error {
	if err := c.deep(depth); err != nil {
		return err
	}
	if l, ok := listOf(v); ok {
		for i := range l.len() {
			if err := c.spend(1); err != nil {
				return err
			}
			if err := c.spreadInto(out, l.item(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	keys, ok := keysOf(v)
	if !ok {
		return c.push(out, v)
	}
	if err := c.spend(stepsPerObject * len(keys)); err != nil {
		return err
	}
	for _, k := range keys {
		o := &Object{}
		o.Set(k, member(v, k))
		if err := c.push(out, o); err != nil {
			return err
		}
	}
	return nil
}
