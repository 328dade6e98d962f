package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// connection says how to reach the cluster.
type connection struct {
	brokers words
	config  string // a properties file
	timeout time.Duration

	tls                    bool
	tlsCA, tlsCert, tlsKey string // files
	tlsSkipVerify          bool

	mechanism, user, passwordFile string

	set map[string]bool // the flags that were given
}

const (
	defaultBroker   = "localhost:9092"
	passwordVar     = "ODRADEK_PASSWORD"
	softwareName    = "odradek"
	defaultTimeout  = 30 * time.Second
	requestOverhead = 10 * time.Second // how long one request may take beyond its own time-out
)

func (c *connection) flags(f *flag.FlagSet) {
	f.Var(&c.brokers, "bootstrap-server", "the brokers to find the cluster at, as `host:port,…` (default "+defaultBroker+")")
	f.StringVar(&c.config, "command-config", "", "a properties `FILE` as Kafka's own tools take it, with bootstrap.servers,\nsecurity.protocol, sasl.* and ssl.* (keys and certificates in PEM); flags win over it")
	f.DurationVar(&c.timeout, "timeout", defaultTimeout, "give up after this `time`")
	f.BoolVar(&c.tls, "tls", false, "encrypt connections")
	f.StringVar(&c.tlsCA, "tls-ca", "", "trust the certificates in this PEM `FILE` (default: the system's)")
	f.StringVar(&c.tlsCert, "tls-cert", "", "the client's certificate and its chain, a PEM `FILE`")
	f.StringVar(&c.tlsKey, "tls-key", "", "the client's key, a PEM `FILE` (default: that of -tls-cert)")
	f.BoolVar(&c.tlsSkipVerify, "tls-skip-verify", false, "don't check who the brokers are; anybody could be")
	f.StringVar(&c.mechanism, "sasl-mechanism", "", "authenticate with this `mechanism`: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	f.StringVar(&c.user, "user", "", "authenticate as this `user`")
	f.StringVar(&c.passwordFile, "password-file", "", "a `FILE` with the user's password (default: the environment's "+passwordVar+")")
}

// connect returns a client that has reached a broker, and the context of what it is
// wanted for, which ends after the time-out.
func (e *env) connect(ctx context.Context, opts ...kgo.Opt) (context.Context, *kgo.Client, func(), error) {
	security, brokers, err := e.connection.options()
	if err != nil {
		return nil, nil, nil, err
	}
	all := append(security,
		kgo.SeedBrokers(brokers...),
		kgo.ClientID(softwareName),
		kgo.RequestTimeoutOverhead(requestOverhead),
		kgo.RetryTimeout(e.connection.timeout),
	)
	client, err := kgo.NewClient(append(all, opts...)...)
	if err != nil {
		return nil, nil, nil, &usageError{reason: fmt.Sprintf("%s: %v", strings.Join(brokers, ","), err)}
	}
	ctx, cancel := context.WithTimeout(ctx, e.connection.timeout)
	done := func() {
		cancel()
		client.Close()
	}
	if err := client.Ping(ctx); err != nil {
		done()
		hint := ""
		if errors.Is(err, io.EOF) || errors.Is(err, kerr.SaslAuthenticationFailed) {
			hint = "; check -user, its password, and -tls"
		}
		return nil, nil, nil, fmt.Errorf("no broker answers at %s: %w%s", strings.Join(brokers, ","), err, hint)
	}
	return ctx, client, done, nil
}

// options are what the client is to be made with, and the brokers to begin with.
func (c *connection) options() (security []kgo.Opt, brokers []string, err error) {
	if c.timeout <= 0 {
		return nil, nil, &usageError{reason: fmt.Sprintf("-timeout is %v; it takes some time", c.timeout)}
	}
	p := make(properties)
	if c.config != "" {
		if p, err = readProperties(c.config); err != nil {
			return nil, nil, fmt.Errorf("-command-config %w", err)
		}
	}
	s, err := p.security()
	if err != nil {
		return nil, nil, fmt.Errorf("-command-config %s: %w", c.config, err)
	}
	if err := c.override(&s); err != nil {
		return nil, nil, err
	}
	if security, err = s.options(); err != nil {
		return nil, nil, err
	}
	brokers = c.brokers
	if len(brokers) == 0 {
		var l words
		_ = l.Set(p["bootstrap.servers"]) // takes everything
		brokers = l
	}
	if len(brokers) == 0 {
		brokers = []string{defaultBroker}
	}
	return security, brokers, nil
}

// override changes what a properties file says to what flags say.
func (c *connection) override(s *security) (err error) {
	s.tls = s.tls || c.tls || c.tlsCA != "" || c.tlsCert != "" || c.tlsSkipVerify
	if c.set["tls"] && !c.tls {
		s.tls = false
	}
	s.skipVerify = s.skipVerify || c.tlsSkipVerify
	if c.tlsCA != "" {
		if s.ca, err = os.ReadFile(c.tlsCA); err != nil {
			return fmt.Errorf("-tls-ca %w", err)
		}
	}
	if c.tlsCert != "" {
		if s.cert, err = os.ReadFile(c.tlsCert); err != nil {
			return fmt.Errorf("-tls-cert %w", err)
		}
		s.key = s.cert
	}
	if c.tlsKey != "" {
		if c.tlsCert == "" {
			return &usageError{reason: "-tls-key needs -tls-cert"}
		}
		if s.key, err = os.ReadFile(c.tlsKey); err != nil {
			return fmt.Errorf("-tls-key %w", err)
		}
	}
	if c.mechanism != "" {
		s.mechanism = c.mechanism
	}
	if c.user == "" {
		if c.passwordFile != "" {
			return &usageError{reason: "-password-file needs -user"}
		}
		return nil
	}
	if s.user, s.password, err = c.user, os.Getenv(passwordVar), nil; c.passwordFile != "" {
		password, err := os.ReadFile(c.passwordFile)
		if err != nil {
			return fmt.Errorf("-password-file %w", err)
		}
		s.password = strings.TrimRight(string(password), "\r\n")
	}
	switch {
	case s.password == "":
		return &usageError{reason: "-user needs a password, in -password-file or in the environment's " + passwordVar}
	case s.mechanism == "":
		return &usageError{reason: "-user needs -sasl-mechanism"}
	}
	return nil
}

// errNotPEM is for stores of Java.
var errNotPEM = errors.New("only PEM can be read; export it with keytool and openssl")
