package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// properties are those of a Java properties file.
type properties map[string]string

func readProperties(file string) (properties, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := parseProperties(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// parseProperties reads the format of java.util.Properties.
func parseProperties(text string) (properties, error) {
	p := make(properties)
	for _, line := range logicalLines(text) {
		end := 0 // of the key
		for end < len(line) && !strings.ContainsRune("=: \t\f", rune(line[end])) {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(line))
		value := strings.TrimLeft(line[end:], " \t\f")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = strings.TrimLeft(value[1:], " \t\f")
		}
		key, err := unescape(line[:end])
		if err != nil {
			return nil, err
		}
		if p[key], err = unescape(value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err) // the value may be a secret
		}
	}
	return p, nil
}

// logicalLines are the lines without comments, with those joined that end in a
// backslash.
func logicalLines(text string) []string {
	var lines []string
	joined := false
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t\f")
		if !joined && (line == "" || line[0] == '#' || line[0] == '!') {
			continue
		}
		if joined {
			lines[len(lines)-1] += line
		} else {
			lines = append(lines, line)
		}
		last := lines[len(lines)-1]
		backslashes := len(last) - len(strings.TrimRight(last, `\`))
		if joined = backslashes%2 == 1; joined {
			lines[len(lines)-1] = last[:len(last)-1]
		}
	}
	return lines
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	var units []uint16 // of \u, which come in pairs beyond the first 64 Ki
	flush := func() {
		b.WriteString(string(utf16.Decode(units)))
		units = nil
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			flush()
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'u' {
			if i+5 > len(s) {
				return "", fmt.Errorf(`\u needs four hexadecimal digits`)
			}
			unit, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`\u needs four hexadecimal digits`)
			}
			units = append(units, uint16(unit))
			i += 4
			continue
		}
		flush()
		if at := strings.IndexByte("tnrf", s[i]); at >= 0 {
			b.WriteByte("\t\n\r\f"[at])
		} else {
			b.WriteByte(s[i])
		}
	}
	flush()
	return b.String(), nil
}

// known are the properties about security that are honoured. Others of that kind are
// refused: ignoring one could mean less security than was asked for.
var known = []string{
	"security.protocol", "sasl.mechanism", "sasl.jaas.config",
	"ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.certificates", "ssl.truststore.password",
	"ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.keystore.password",
	"ssl.endpoint.identification.algorithm",
}

// security is what the properties say about it.
func (p properties) security() (security, error) {
	var s security
	for _, key := range slices.Sorted(maps.Keys(p)) {
		about := strings.HasPrefix(key, "ssl.") || strings.HasPrefix(key, "sasl.") || strings.HasPrefix(key, "security.")
		if about && !slices.Contains(known, key) {
			return s, fmt.Errorf("%s can't be honoured", key)
		}
	}
	var withSASL bool
	switch protocol := strings.ToUpper(p["security.protocol"]); protocol {
	case "", "PLAINTEXT":
	case "SSL":
		s.tls = true
	case "SASL_PLAINTEXT":
		withSASL = true
	case "SASL_SSL":
		s.tls, withSASL = true, true
	default:
		return s, fmt.Errorf("security.protocol is %q; PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL are possible", protocol)
	}
	var err error
	if s.ca, err = p.pem("ssl.truststore", "certificates"); err != nil {
		return s, err
	}
	if s.key, err = p.pem("ssl.keystore", "key"); err != nil {
		return s, err
	}
	if s.cert = s.key; p["ssl.keystore.certificate.chain"] != "" {
		s.cert = []byte(p["ssl.keystore.certificate.chain"])
	}
	if algorithm, set := p["ssl.endpoint.identification.algorithm"]; set {
		switch strings.ToLower(algorithm) {
		case "":
			s.anyHostname = true
		case "https":
		default:
			return s, fmt.Errorf("ssl.endpoint.identification.algorithm is %q; https, or nothing, is possible", algorithm)
		}
	}
	if withSASL {
		if s.mechanism = p["sasl.mechanism"]; s.mechanism == "" {
			s.mechanism = "GSSAPI" // Kafka's default, which is refused later unless a flag wins
		}
		if s.user, s.password, err = login(p["sasl.jaas.config"]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// pem reads a store in PEM, which is a file or stands in the properties.
func (p properties) pem(store, inline string) ([]byte, error) {
	location, content := p[store+".location"], p[store+"."+inline]
	switch kind := strings.ToUpper(p[store+".type"]); {
	case location == "" && content == "":
		return nil, nil
	case kind != "PEM":
		return nil, fmt.Errorf("%s.type is %q: %w", store, kind, errNotPEM)
	case content != "":
		return []byte(content), nil
	}
	data, err := os.ReadFile(location)
	if err != nil {
		return nil, fmt.Errorf("%s.location: %w", store, err)
	}
	return data, nil
}

// login takes user and password out of a sasl.jaas.config, such as
//
//	org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret";
func login(jaas string) (user, password string, err error) {
	options := make(map[string]string)
	rest := jaas
	for {
		at := strings.IndexByte(rest, '=')
		if at < 0 {
			break
		}
		fields := strings.Fields(rest[:at])
		if len(fields) == 0 {
			return "", "", fmt.Errorf("sasl.jaas.config: an option has no name")
		}
		name := fields[len(fields)-1]
		rest = strings.TrimLeft(rest[at+1:], " \t")
		var value strings.Builder
		quote := byte(0)
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			quote, rest = rest[0], rest[1:]
		}
		closed := quote == 0
		i := 0
		for ; i < len(rest); i++ {
			c := rest[i]
			if quote != 0 && c == quote {
				closed = true
				i++
				break
			}
			if quote == 0 && strings.IndexByte(" \t;", c) >= 0 {
				break
			}
			if quote != 0 && c == '\\' && i+1 < len(rest) {
				i++
				c = rest[i]
			}
			value.WriteByte(c)
		}
		if !closed {
			return "", "", fmt.Errorf("sasl.jaas.config: the value of %s has no end", name)
		}
		options[name], rest = value.String(), rest[i:]
	}
	return options["username"], options["password"], nil
}
