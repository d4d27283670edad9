package jsonata

// callback calls a function with as many of the arguments as it takes, at least
// with the first.
func (c *call) callback(f *function, args ...any) (any, error) {
	takes := min(max(f.takes, 1), len(args))
	return c.e.at(c.where, f.label()).invoke(f, args[:takes], nil)
}

// test is callback for a function that decides.
func (c *call) test(f *function, args ...any) (bool, error) {
	v, err := c.callback(f, args...)
	if err != nil || isUndefined(v) {
		return false, err
	}
	return c.truthy(v, 1)
}

// forEach visits the items of the first argument.
func (c *call) forEach(visit func(i int, item any) error) error {
	l := asList(c.args[0])
	for i := range l.len() {
		if err := c.spend(1); err != nil {
			return err
		}
		if err := visit(i, l.item(i)); err != nil {
			return err
		}
	}
	return nil
}

// function is an argument that the signature says is a function, nil if it is
// absent.
func (c *call) function(i int) *function {
	f, _ := c.args[i].(*function)
	return f
}

func (c *call) mapItems() (any, error) {
	out := &list{seq: true}
	return out, c.forEach(func(i int, item any) error {
		v, err := c.callback(c.function(1), item, float64(i), c.args[0])
		if err != nil || isUndefined(v) {
			return err
		}
		return c.push(out, v)
	})
}

func (c *call) filter() (any, error) {
	out := &list{seq: true}
	return out, c.forEach(func(i int, item any) error {
		keep, err := c.test(c.function(1), item, float64(i), c.args[0])
		if err != nil || !keep {
			return err
		}
		return c.push(out, item)
	})
}

func (c *call) single() (any, error) {
	var only any = undefined{}
	count := 0
	err := c.forEach(func(i int, item any) (err error) {
		matches := true
		if f := c.function(1); f != nil {
			matches, err = c.test(f, item, float64(i), c.args[0])
		}
		if err != nil || !matches {
			return err
		}
		only = item
		if count++; count > 1 {
			return c.fail("D3138", "$single finds more than one item")
		}
		return nil
	})
	if err == nil && count == 0 {
		return nil, c.fail("D3139", "$single finds no item")
	}
	return only, err
}

// reduce calls a function with what it gave for the items so far, and the next.
func (c *call) reduce() (any, error) {
	f, result := c.function(1), c.args[2]
	if f.takes < 2 {
		return nil, c.fail("D3050", "argument 2 of $reduce must be a function of at least two parameters")
	}
	first := isUndefined(result)
	err := c.forEach(func(i int, item any) (err error) {
		if first && i == 0 {
			result = item
			return nil
		}
		result, err = c.callback(f, result, item, float64(i), c.args[0])
		return err
	})
	return result, err
}

// forMembers visits the members of the first argument.
func (c *call) forMembers(visit func(key string, value any) error) error {
	keys, _ := keysOf(c.args[0])
	for _, k := range keys {
		if err := c.spend(stepsPerKey); err != nil {
			return err
		}
		if err := visit(k, member(c.args[0], k)); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) each() (any, error) {
	out := &list{seq: true}
	return out, c.forMembers(func(key string, value any) error {
		v, err := c.callback(c.function(1), value, key, c.args[0])
		if err != nil || isUndefined(v) {
			return err
		}
		return c.push(out, v)
	})
}

func (c *call) sift() (any, error) {
	out := &Object{}
	err := c.forMembers(func(key string, value any) error {
		keep, err := c.test(c.function(1), value, key, c.args[0])
		if err != nil || !keep {
			return err
		}
		out.Set(key, value)
		return c.grow(1)
	})
	if out.Len() == 0 {
		return undefined{}, err
	}
	return out, err
}
