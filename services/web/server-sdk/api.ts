// Generated from /openapi.json (1978cbc7181f39e3) by make sdk-types. Don't edit.
export interface components {
  schemas: {
    ApiErrorDetails: {
      fields?: components['schemas']['ApiFieldIssue'][]
      allowed_values?: string[]
      header_name?: string
      parameter_set?: string
      merged_into?: string
      /** @enum {string} */
      next_action?: 'retry' | 'new_session' | 'reload_bundle' | 'contact_support'
    }
    ApiFieldIssue: {
      name: string
      issue: string
      expected?: string
      received?: string | number | boolean | null
    }
    Decision: {
      event_id: string
      verdict: components['schemas']['Verdict']
      /** @description human 0-39, inconclusive 40-69, bot 70-100. */
      risk_score: number
      phase: components['schemas']['Phase']
      is_provisional: boolean
      manipulation: components['schemas']['ManipulationSummary'] | null
      evaluation_duration_ms: number
      /** Format: date-time */
      evaluated_at: string
    }
    GateApprovedWebhookPayload: {
      /** @description The service that somebody signs up for. */
      service_id: string
      /** @description Of the signup: make one account for it, however often you are asked. */
      gate_session_id: string
      /** @description Keep it with the account: agent tokens and dashboard logins name it. */
      gate_account_id: string
      /** @description 1 to 100 characters, as the agent named the account. */
      account_name: string
      /** @description What the agent sent along; nobody has checked it. */
      metadata: {
        [key: string]: unknown
      } | null
      /** @description How the person who approved was scored; `score` is a hundredth of risk_score. */
      foil: {
        verdict: components['schemas']['Verdict']
        score: number | null
      }
      /** @description The key to seal the credentials to. */
      delivery: components['schemas']['GateDeliveryRequest']
    }
    GateDeliveryRequest: {
      /** @constant */
      version: 1
      /** @constant */
      algorithm: 'x25519-hkdf-sha256/aes-256-gcm'
      /** @description base64url of the SHA-256 of the raw public key. */
      key_id: string
      /** @description base64url of the raw X25519 public key. */
      public_key: string
    }
    GateSessionApprovedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'gate.session.approved'
        data: components['schemas']['GateApprovedWebhookPayload']
      } & {
        [key: string]: unknown
      })
    IdentificationCandidate: {
      visitor_id: string
      /** @description Bits of evidence that both are one device. Null where they have no look in common, or where something changed that no device changes. */
      bits: number | null
      same_network: boolean | null
      /** @description Null where the session or the visitor told nothing of its machine, where the visitor has more than 5,000 sessions, and where both came at once. */
      components: {
        agreed: components['schemas']['IdentificationComponent'][]
        changed: components['schemas']['IdentificationComponent'][]
        /** @description On one side or both. */
        unknown: components['schemas']['IdentificationComponent'][]
      } | null
    }
    IdentificationComponent: {
      name: string
      /** @description How many of of_visitors look like this session in it. Null where the session's is unknown. */
      visitors_with_it: number | null
    }
    IdentificationNext: {
      visitor_id: string
      /** @description Bits of evidence that both are one device. Null where they have no look in common, or where something changed that no device changes. */
      bits: number | null
      same_network: boolean | null
      /** @description Null where the session or the visitor told nothing of its machine, where the visitor has more than 5,000 sessions, and where both came at once. */
      components: {
        agreed: components['schemas']['IdentificationComponent'][]
        changed: components['schemas']['IdentificationComponent'][]
        /** @description On one side or both. */
        unknown: components['schemas']['IdentificationComponent'][]
      } | null
      /**
       * @description kept_id_decides: an id goes before any look. less_likely: the chosen one has more bits. too_little_evidence: fewer than bits_needed. present_elsewhere: it was there within the hour, so its storage was not lost. known_too_briefly: it began less than a day before, so nothing tells whether only one machine looks so. look_of_several: two visitors with this look were there within a day of each other, so it tells nobody. no_clear_lead: another candidate is as likely, and they are two. other_model: an install id was copied to another model. corrected: a correction took the session from it. known_since: it would be chosen now, and was not known then.
       * @enum {string}
       */
      lost_because:
        | 'kept_id_decides'
        | 'less_likely'
        | 'too_little_evidence'
        | 'present_elsewhere'
        | 'known_too_briefly'
        | 'look_of_several'
        | 'no_clear_lead'
        | 'other_model'
        | 'corrected'
        | 'known_since'
    }
    /** @description Where the event of the newest decision is on the log. */
    LogPlace: {
      /** @constant */
      topic: 'tidegate.sessions.v1'
      partition: number
      offset: number
    }
    ManipulationSummary: {
      score: number
      /** @enum {string} */
      verdict: 'none' | 'low' | 'medium' | 'high'
    }
    Mark: {
      /** @constant */
      object: 'mark'
      id: string
      /** @enum {string} */
      label: 'human' | 'bot' | 'fraud' | 'legitimate'
      reason: string | null
      /** @description How many sessions it is on. */
      session_count: number
      /** Format: date-time */
      created_at: string
    }
    MarkRequestInput: {
      session_ids?: string[]
      /** @description All of the visitor's sessions so far. */
      visitor_id?: string
      /** @description All of the user's sessions so far. */
      client_user_id?: string
      /** @enum {string} */
      label: 'human' | 'bot' | 'fraud' | 'legitimate'
      /** @description A word of your own. */
      reason?: string
    } & (unknown | unknown | unknown)
    /** @enum {string} */
    Phase: 'snapshot' | 'behavioral'
    /** @description How the score of the newest decision came about. */
    ScoreExplanation: {
      /** @description In their order from 0; the last total is `decision.risk_score`. Null where the points of the model that decided are not known: a decision of an earlier release. */
      steps: components['schemas']['ScoreStep'][] | null
      /** @description Signals that fired and changed nothing, because another one decides alone. */
      without_effect: string[]
      /** @description What the signals that fired mean, as this release has them. */
      signals: components['schemas']['ScoreSignal'][]
    }
    ScoreSignal: {
      signal: string
      name: string
      looks_at: string
      /** @description When people have it. */
      false_positives: string
    }
    ScoreStep: {
      /**
       * @description signal: one that fired. weak_limit, habits_limit, trust_limit: all of this kind together count as at most `bound`. least: no score is below 0. unconfirmed_cap: nothing of another channel confirms what fired. no_snapshot_floor: there is no readable snapshot. signal_floor: required evidence is missing, as `signal` says. rounding: scores are whole numbers.
       * @enum {string}
       */
      kind:
        | 'signal'
        | 'weak_limit'
        | 'habits_limit'
        | 'trust_limit'
        | 'least'
        | 'unconfirmed_cap'
        | 'no_snapshot_floor'
        | 'signal_floor'
        | 'rounding'
      signal: string | null
      /** @description Of a limit, cap or floor. */
      bound: number | null
      /** @description What it adds to the total of the step before; negative where it takes away. */
      change: number
      /** @description The score from then on. */
      total: number
    }
    ScoredRequest: {
      /**
       * @description Never `human`: a request shows no person.
       * @enum {string}
       */
      verdict: 'bot' | 'inconclusive'
      agent: components['schemas']['SessionAgent']
      /** @description What the request shows, also where that is not enough for a verdict. */
      reasons: (
        | 'verified_agent'
        | 'spoofed_agent'
        | 'declared_bot_user_agent'
        | 'signature_agent_header'
        | 'http_client_user_agent'
        | 'headless_user_agent'
        | 'bot_like_user_agent'
        | 'app_library_user_agent'
        | 'user_agent_missing'
        | 'browser_with_tool_handshake'
        | 'hosting_network'
      )[]
      /** @description What might have said more, and was not looked at. */
      unchecked: (
        | 'published_ranges'
        | 'reverse_dns'
        | 'signature_key'
        | 'signature_replay'
        | 'handshake'
        | 'hosting_network'
      )[]
    }
    /** @description Which bot or agent the session says that it is, and whether that is so. */
    SessionAgent: {
      /** @enum {string} */
      status: 'none' | 'declared' | 'signed' | 'verified' | 'spoofed'
      /** @description Who runs it, as `openai`, or the domain that it names. */
      provider: string | null
      /** @description Its name, as `Googlebot`. */
      product: string | null
      /** @description search, ai_assistant, ai_training, monitor, preview, feed, advertising, archive, research, security, seo, webhook or other. */
      purpose: string | null
      /** @description The check that decided: signature, reverse_dns or published_ranges. */
      method: string | null
      evidence: {
        catalogue_id: string | null
        /** @description Host of the Signature-Agent header, with its port unless that is 443. */
        domain: string | null
        /** @description Thumbprint of the key that signed. */
        key_id: string | null
        /** @description Of the address, where it leads back to it. */
        host_name: string | null
        /** @description The published ranges that were searched for the address. */
        list: string | null
        /** @description Why the signature does not count. */
        reason: string | null
        /** @description When the directory of keys or the host name was fetched. */
        fetched_at: string | null
      } | null
    }
    SessionAggregates: {
      /** @constant */
      object: 'session_aggregates'
      /**
       * Format: date-time
       * @description From when on sessions were counted: the first one without another time.
       */
      since: string
      /** Format: date-time */
      until: string
      /** @description False where there are too many sessions to read: the numbers are of the newest ones, from `since` on. */
      is_complete: boolean
      sessions: number
      /** @description Not among `sessions`: see `kind`. */
      ended: number
      /** @description Distinct ones. */
      visitors: number | null
      /** @description Distinct values of client_user_id. */
      users: number | null
      /** @description Why there are no numbers of visitors and users. */
      distinct_missing: ('over_seven_days' | 'over_a_million_sessions') | null
      groups: components['schemas']['SessionGroup'][]
    }
    SessionAttribution: {
      labels: {
        /** @enum {string} */
        kind:
          | 'actor'
          | 'provider'
          | 'tool'
          | 'product'
          | 'organization'
          | 'purpose'
          | 'environment'
          | 'trust'
          | 'evasion'
        value: string
        label: string
        confidence: number
      }[]
      behaviors: {
        /** @enum {string} */
        channel: 'typing' | 'form' | 'mouse' | 'touch' | 'scroll' | 'clipboard'
        value: string
        label: string
        confidence: number
      }[]
    }
    SessionBrowser: {
      name: string | null
      version: string | null
      major_version: string | null
      engine: string
      /** @description The app around an embedded web view; null for ordinary browsers. */
      app_name: string | null
    }
    SessionClientTelemetry: {
      navigator: {
        platform: string | null
        vendor: string | null
        hardware_concurrency: number | null
        device_memory: number | null
        max_touch_points: number | null
        pdf_viewer_enabled: boolean | null
        cookie_enabled: boolean | null
        product_sub: string | null
        primary_language: string | null
        languages: string[]
        mime_types_count: number | null
        plugins: string[]
      }
      storage: {
        cookies: boolean | null
        local_storage: boolean | null
        session_storage: boolean | null
        indexed_db: boolean | null
        service_worker: boolean | null
        window_name: boolean | null
      }
      canvas: {
        hash: string | number | null
        geometry_hash: string | number | null
        text_hash: string | number | null
        winding: boolean | null
        noise_detected: boolean | null
        offscreen_consistent: boolean | null
      }
      graphics: {
        webgl: {
          vendor: string | null
          renderer: string | null
          version: string | null
          shading_language_version: string | null
          parameters_hash: string | number | null
          extensions_hash: string | number | null
          extension_parameters_hash: string | number | null
          shader_precision_hash: string | number | null
        }
        webgpu: {
          available: boolean | null
          adapter_vendor: string | null
          adapter_architecture: string | null
          fallback_adapter: boolean | null
          features_hash: string | number | null
          limits_hash: string | number | null
        }
      }
      audio: {
        hash: string | number | null
        sample_rate: number | null
        channel_count: number | null
        voice_count: number | null
        local_voice_count: number | null
        default_voice_lang: string | null
        noise_detected: boolean | null
      }
      fonts: {
        detected_count: number | null
        tested_count: number | null
        enumeration_hash: string | number | null
        metrics_hash: string | number | null
        preferences_hash: string | number | null
        emoji_hash: string | number | null
      }
      media: {
        device_count: number | null
        counts_by_kind: {
          [key: string]: number
        }
        blank_label_count: number | null
        topology_hash: string | number | null
      }
    }
    SessionConnectionFingerprint: {
      ja4: {
        hash: string | null
        profile: string | null
        family: string | null
        product: string | null
        confidence: string | null
        match_source: string | null
        deterministic: boolean | null
        reference: {
          label: string
          source: string
          protocol: string
          tls_version: string
          sni: string
          alpn: string
          cipher_count: {
            min: number
            max: number
          }
          ext_count: {
            min: number
            max: number
          }
          sample_size: number
          verified: boolean | null
        } | null
      }
      http2: {
        akamai_fingerprint: string | null
        profile: string | null
      }
      user_agent_alignment: ('match' | 'mismatch' | 'unknown') | null
    }
    SessionDetail: {
      /** @constant */
      object: 'session'
      id: string
      /** Format: date-time */
      created_at: string
      /** @description The customer's own id of the end user; set with PATCH /v1/sessions/{sessionId}. */
      client_user_id: string | null
      mark: components['schemas']['SessionMark'] | null
      decision: components['schemas']['SessionDetailDecision']
      highlights: components['schemas']['SessionHighlight'][]
      attribution: components['schemas']['SessionAttribution'] | null
      web_bot_auth: components['schemas']['SessionWebBotAuth'] | null
      agent: components['schemas']['SessionAgent']
      network: components['schemas']['SessionNetwork']
      runtime_integrity: components['schemas']['SessionRuntimeIntegrity']
      visitor_fingerprint: components['schemas']['SessionDetailVisitorFingerprint'] | null
      /** @description Present where `include` asks for it. */
      identification?: components['schemas']['VisitorIdentification'] | null
      /** @description Present where `include` asks for it. */
      score?: components['schemas']['ScoreExplanation']
      /** @description Present where `include` asks for it. */
      log?: components['schemas']['LogPlace']
      connection_fingerprint: components['schemas']['SessionConnectionFingerprint']
      previous_decisions: components['schemas']['SessionDetailDecision'][]
      request: {
        url: string
        referrer: string | null
        user_agent: string
      }
      browser: components['schemas']['SessionBrowser']
      device: components['schemas']['SessionDevice']
      analysis_coverage: {
        browser: boolean
        device: boolean
        network: boolean
        runtime: boolean
        behavioral: boolean
        visitor_identity: boolean
        /** @description Whether the device vouched for the app. Null for pages. */
        attestation: boolean | null
      }
      evidence: components['schemas']['SessionEvidence']
      /** @description What made the decision. */
      scoring: components['schemas']['SessionScoring']
      /** @description Sessions opened before the decision that have something in common with this one, which is included. A count of 100 is that or more. Null where nothing was counted. */
      repeats: components['schemas']['SessionRepeats'] | null
      signals_fired: {
        signal: string
        role: string
        category: string
        strength: string
        signal_score: number
      }[]
      client_telemetry: components['schemas']['SessionClientTelemetry']
      native_runtime_integrity: components['schemas']['SessionNativeRuntimeIntegrity'] | null
      native_app: components['schemas']['SessionNativeApp'] | null
      native_carrier: components['schemas']['SessionNativeCarrier'] | null
      native_motion_print: components['schemas']['SessionNativeMotionPrint'] | null
      device_identity: components['schemas']['SessionDetailDeviceIdentity'] | null
      install_id: string | null
      behavior: null
    }
    SessionDetailDecision: {
      event_id: string
      /** @enum {string} */
      automation_status: 'automated' | 'human' | 'uncertain'
      risk_score: number
      evaluation_phase: components['schemas']['Phase']
      /** @enum {string} */
      decision_status: 'preliminary' | 'final'
      /** Format: date-time */
      evaluated_at: string
    }
    SessionDetailDeviceIdentity: {
      /** @constant */
      object: 'device_identity'
      id: string
      confidence: number
      /** @enum {string} */
      source: 'attested' | 'anchored' | 'inferred' | 'new'
      /** @enum {string} */
      platform: 'ios' | 'android'
      /** Format: date-time */
      identified_at: string
      lifecycle: {
        /** Format: date-time */
        first_seen_at: string
        /** Format: date-time */
        last_seen_at: string
        seen_count: number
      }
      matched_anchors: string[]
    }
    SessionDetailVisitorFingerprint: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      confidence: number | null
      identified_at: string | null
      /** @description How this session was tied to the visitor id. */
      resolution: {
        method:
          | (
              | 'continuity'
              | 'fingerprint'
              | 'fingerprint_evolution'
              | 'new'
              | 'native_persistent'
              | 'native_new'
              | 'existing'
              | 'unknown'
            )
          | null
        basis: ('deterministic' | 'probabilistic') | null
      }
      lifecycle: {
        first_seen_at: string | null
        last_seen_at: string | null
        seen_count: number | null
      }
    }
    SessionDevice: {
      form_factor: string
      operating_system: {
        name: string | null
        version: string | null
      }
      architecture: string | null
      screen: {
        size: string | null
        color_depth: number | null
        pixel_ratio: number | null
        orientation_type: string | null
      }
      locale: {
        timezone: string | null
        primary_language: string | null
        languages: string[]
      }
      capabilities: {
        touch: {
          available: boolean | null
          max_touch_points: number | null
        }
        storage: {
          cookies: boolean | null
          local_storage: boolean | null
          indexed_db: boolean | null
          service_worker: boolean | null
          window_name: boolean | null
        }
        webgpu: {
          available: boolean | null
        }
        platform_authenticator: {
          available: boolean | null
          conditional_mediation: boolean | null
        }
        media_devices: {
          available: boolean | null
        }
        speech_synthesis: {
          available: boolean | null
        }
      }
    }
    SessionEvidence: {
      /** @description What was consulted. */
      sources: string[]
      /** @description Members that stand at their harmless value because nothing was consulted for them: names of runtime_integrity, and paths of other members. */
      unchecked: string[]
      /** @description What the SDK always sends and did not. */
      missing: string[]
      /** @description What is not there, and why, as such a browser may have it. */
      withheld: {
        /** @description A part of the snapshot, as in `client_telemetry`. */
        group: string
        /** @enum {string} */
        reason: 'blocked' | 'unsupported' | 'late'
      }[]
      /** @description What has a value that no browser has. */
      impossible: string[]
      /** @description Members that have what the app says of itself and its device, which nothing verifies. */
      claimed: string[]
    }
    /** @description What sessions are filtered and counted by. Null once its decisions have ended. */
    SessionFacts: {
      /** @description Those that fired. */
      signals: string[]
      page_host: string | null
      page_path: string | null
      country: string | null
      asn: number | null
      network_holder: string | null
      network:
        | (
            | 'tor'
            | 'vpn'
            | 'relay'
            | 'residential_proxy'
            | 'proxy'
            | 'callback_proxy'
            | 'hosting'
            | 'other'
            | 'unknown'
          )
        | null
      browser: string | null
      browser_version: string | null
      os: string | null
      form_factor: string | null
      agent_status: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed') | null
      agent_provider: string | null
      agent_product: string | null
      handed_off_at: string | null
    }
    SessionFingerprintCalculatedPayload: {
      /** @constant */
      object: 'session_fingerprint'
      session: {
        id: string
      }
      visitor_fingerprint: {
        id: string
        confidence: number | null
        /** Format: date-time */
        identified_at: string
      }
      request: components['schemas']['WebhookRequestSummary']
      /** Format: date-time */
      calculated_at: string
    }
    SessionFingerprintCalculatedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'session.fingerprint.calculated'
        data: components['schemas']['SessionFingerprintCalculatedPayload']
      } & {
        [key: string]: unknown
      })
    SessionGroup: {
      /** @description Of the interval; null without intervals. */
      start: string | null
      /**
       * @description `other`: all groups but the largest ones. `ended`: sessions whose decisions have ended, of which filters or groups ask what is gone.
       * @enum {string}
       */
      kind: 'value' | 'other' | 'ended'
      /** @description By field; null where sessions have no value. Empty for `other` and `ended`. */
      values: {
        [key: string]: string | null
      }
      sessions: number
    }
    SessionHighlight: {
      key: string
      /** @enum {string} */
      effect: 'increases_risk' | 'reduces_risk' | 'context'
      /** @enum {string} */
      importance: 'high' | 'medium' | 'low'
      summary: string
      evidence?: {
        signal: string
        name: string
      }[]
    }
    /** @description The newest of `POST /v1/marks`. */
    SessionMark: {
      id: string
      /** @enum {string} */
      label: 'human' | 'bot' | 'fraud' | 'legitimate'
      reason: string | null
      /** Format: date-time */
      marked_at: string
    }
    SessionNativeApp: {
      bundle_id: string
      app_version: string | null
      app_build: string | null
      install_time_epoch_ms: number | null
      provisioning_team: string | null
    }
    SessionNativeCarrier: {
      /** @enum {string} */
      platform: 'ios' | 'android'
      carrier_name: string | null
      country_iso: string | null
      mcc: string | null
      mnc: string | null
      phone_type: string | null
      network_type: string | null
      radio_access: string[]
    }
    SessionNativeMotionPrint: {
      /** @enum {string} */
      platform: 'ios' | 'android'
      sample_count: number
      gyro: {
        bias: number[]
        noise: number[]
      }
      accel: {
        bias: number[]
        noise: number[]
      }
      mag: {
        bias: number[]
        noise: number[]
      } | null
    }
    SessionNativeRuntimeIntegrity: {
      /** @enum {string} */
      platform: 'ios' | 'android'
      jailbreak_or_root: {
        detected: boolean
        signals: string[]
        present_paths?: string[]
        dyld_insert_libraries?: string[]
        verified_boot_state?: string
        magisk_mount_present?: boolean
        su_on_path?: boolean
      }
      hooks: {
        detected: boolean
        frida_ports?: number[]
        frida_thread_names?: string[]
        hooked_symbols?: string[]
        self_hooked_symbols?: string[]
        prologue_anomaly_count?: number
        unexpected_dyld_images?: string[]
        xposed_packages?: string[]
      }
      debugger: {
        attached: boolean
        tracer_pid?: number
        breakpoint_count?: number
        watchpoint_thread_count?: number
      }
      code_signing: {
        invalid: boolean
        code_sign_valid?: boolean
        text_integrity_ok?: boolean
        application_debuggable?: boolean
        dyld_insert_libraries?: string[]
      }
      simulator_or_emulator: {
        detected: boolean
        is_ios_app_on_mac?: boolean
        qemu_files?: string[]
        ro_hardware?: string
        ro_product_model?: string
        simulator_env_keys?: string[]
      }
      hardware_claims_mismatch: {
        detected: boolean
        signals: string[]
      }
      sim_posture: {
        detected: boolean
        signals: string[]
      }
      app_provenance: {
        detected: boolean
        signals: string[]
      }
      debug_posture: {
        detected: boolean
        adb_enabled?: boolean
        developer_options_enabled?: boolean
        app_debuggable?: boolean
        app_profileable?: boolean
        app_test_only?: boolean
        debugger_attached?: boolean
        get_task_allow?: boolean
        embedded_provisioning_profile_present?: boolean
        receipt_is_sandbox?: boolean
        receipt_is_testflight?: boolean
        development_bundle?: boolean
        active_debugger_attached?: boolean
        breakpoint_count?: number
        exception_port_count?: number
        watchpoint_thread_count?: number
        tracer_pid?: number
        direct_syscall_tracer_pid?: number
        risk_signals: string[]
      }
    }
    SessionNetwork: {
      ip_address: string | null
      ip_version: ('ipv4' | 'ipv6') | null
      /** @enum {string} */
      status: 'pending' | 'ready' | 'skipped' | 'error'
      summary: string | null
      location: {
        city: string | null
        region: string | null
        country: string | null
        country_code: string | null
        latitude: number | null
        longitude: number | null
        timezone: string | null
        postal_code: string | null
        accuracy_radius_km: number | null
      } | null
      routing: {
        asn: string | null
        organization: string | null
      }
      anonymity: {
        vpn: boolean
        proxy: boolean
        tor: boolean
        relay: boolean
        hosting: boolean
        residential_proxy: boolean
        callback_proxy: boolean
        provider: string | null
      }
      reputation: {
        listed: boolean
        categories: string[]
        suspicious_network: boolean
      }
      evidence: {
        risk_signals: string[]
        operator_tags: string[]
        client_types: string[]
        client_count: number | null
      }
      evaluated_at: string | null
    }
    SessionRepeatCounts: {
      five_minutes: number
      hour: number
      day: number
    }
    SessionRepeats: {
      address_sessions: components['schemas']['SessionRepeatCounts']
      network_sessions: components['schemas']['SessionRepeatCounts']
      visitor_sessions: components['schemas']['SessionRepeatCounts']
      snapshot_sessions: components['schemas']['SessionRepeatCounts']
      behavior_sessions: components['schemas']['SessionRepeatCounts']
      address_visitors: components['schemas']['SessionRepeatCounts']
      visitor_addresses: components['schemas']['SessionRepeatCounts']
      visitor_users: components['schemas']['SessionRepeatCounts']
      user_visitors: components['schemas']['SessionRepeatCounts']
    }
    SessionResultPersistedPayload: {
      /** @constant */
      object: 'session_result'
      session: {
        id: string
      }
      /** @description The decision; `id` is what REST and sealed tokens call `event_id`. */
      event: {
        id: string
        scoring_event_id: string
        phase: components['schemas']['Phase']
        is_provisional: boolean
        /** Format: date-time */
        persisted_at: string
      }
      decision: {
        verdict: components['schemas']['Verdict']
        risk_score: number
        /** @description A hundredth of risk_score. */
        score: number
        manipulation: components['schemas']['ManipulationSummary'] | null
      }
      visitor_fingerprint: {
        id: string
      } | null
      request: components['schemas']['WebhookRequestSummary']
      score_breakdown: {
        categories: {
          [key: string]: number
        }
      } & {
        [key: string]: unknown
      }
      signals: ({
        id: string
        category: string
        confidence: string
        score: number
        role: string
      } & {
        [key: string]: unknown
      })[]
      attribution: {
        /** @description Who the bot is; null unless the verdict is bot. */
        bot: components['schemas']['SessionAttribution'] | null
        /** @description Which bot or agent it says that it is, by this decision. */
        agent: components['schemas']['SessionAgent']
      } & {
        [key: string]: unknown
      }
    }
    SessionResultPersistedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'session.result.persisted'
        data: components['schemas']['SessionResultPersistedPayload']
      } & {
        [key: string]: unknown
      })
    SessionRuntimeIntegrity: {
      /** @enum {string} */
      tampering_detected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      developer_tools_detected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      emulation_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      virtualization_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      privacy_hardening_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      identity_spoofing_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      replay_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      outdated_environment: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      verified_bot_identity: 'clean' | 'notice' | 'elevated' | 'high_risk'
    }
    SessionScoring: {
      /** @description Of the signals. */
      version: string
      /** @description Id of the scoring model, as of GET /v1/scoring/model. */
      model: string
    }
    SessionSummary: {
      /** @constant */
      object: 'session'
      id: string
      /** Format: date-time */
      created_at: string
      /** @description The customer's own id of the end user; set with PATCH /v1/sessions/{sessionId}. */
      client_user_id: string | null
      latest_decision: components['schemas']['Decision']
      visitor_fingerprint: components['schemas']['VisitorFingerprintLink'] | null
      mark: components['schemas']['SessionMark'] | null
      facts: components['schemas']['SessionFacts'] | null
    }
    /** @description Null when the request had no signature headers. */
    SessionWebBotAuth: {
      /** @enum {string} */
      status: 'verified' | 'invalid' | 'unknown_key' | 'absent'
      /** @description Host of the Signature-Agent header, with its port unless that is 443. */
      domain: string | null
    }
    /** @enum {string} */
    Verdict: 'bot' | 'human' | 'inconclusive'
    VisitorFingerprintDetail: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      lifecycle: {
        /** Format: date-time */
        first_seen_at: string
        /** Format: date-time */
        last_seen_at: string
        /** @description Distinct sessions. */
        seen_count: number
        /**
         * @description Always this: no expiry.
         * @constant
         */
        expires_at: '9999-12-31T00:00:00.000Z'
      }
      latest_request: {
        user_agent: string
        ip_address: string
      }
      storage: {
        cookies: boolean
        local_storage: boolean
        indexed_db: boolean
        service_worker: boolean
        window_name: boolean
      }
      anchors: {
        webgl_hash: string | null
        parameters_hash: string | null
        audio_hash: string | null
      }
      components: {
        vector: number[]
      }
      /** @description Of the newest session. Present where `include` asks for it. */
      identification?: components['schemas']['VisitorIdentification'] | null
      activity: {
        sessions: {
          session_id: string
          decision: components['schemas']['Decision']
          request: {
            url: string
            user_agent: string
            ip_address: string
            screen_size: string | null
            is_touch_capable: boolean | null
          }
          score_breakdown: {
            categories: {
              [key: string]: number
            }
          }
        }[]
      }
    }
    VisitorFingerprintLink: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      confidence: number | null
      identified_at: string | null
      /** @description How this session was tied to the visitor id. Present where `include` asks for it. */
      resolution?: {
        method:
          | (
              | 'continuity'
              | 'fingerprint'
              | 'fingerprint_evolution'
              | 'new'
              | 'native_persistent'
              | 'native_new'
              | 'existing'
              | 'unknown'
            )
          | null
        basis: ('deterministic' | 'probabilistic') | null
      }
    }
    VisitorFingerprintSummary: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      lifecycle: {
        /** Format: date-time */
        first_seen_at: string
        /** Format: date-time */
        last_seen_at: string
        /** @description Distinct sessions. */
        seen_count: number
        /**
         * @description Always this: no expiry.
         * @constant
         */
        expires_at: '9999-12-31T00:00:00.000Z'
      }
      latest_request: {
        user_agent: string
        ip_address: string
      }
      storage: {
        cookies: boolean
        local_storage: boolean
        indexed_db: boolean
        service_worker: boolean
        window_name: boolean
      }
      anchors: {
        webgl_hash: string | null
        parameters_hash: string | null
        audio_hash: string | null
      }
    }
    /** @description Computed at the time of the answer, from what is known today of the sessions before. Null without a visitor. */
    VisitorIdentification: {
      session_id: string
      /**
       * @description kept_id: the browser kept an id. install_id: the app did. look: the machine looks as before. correction: a split or a merger gave the session its visitor. doubt: there was a candidate, and nobody was sure. nobody_before: nobody looked like it.
       * @enum {string}
       */
      decided_by: 'kept_id' | 'install_id' | 'look' | 'correction' | 'doubt' | 'nobody_before'
      /** @description Null where nobody is looked for by how the session looks. */
      bits_needed: number | null
      /** @description How many visitors were counted: those that were seen last, at most 1,000, within the last minute. */
      of_visitors: number
      /** @description Null where the session began a visitor. */
      chosen: components['schemas']['IdentificationCandidate'] | null
      /** @description The likeliest of all other candidates. */
      next: components['schemas']['IdentificationNext'] | null
    }
    WebhookEventEnvelope: {
      /** @description The same in every attempt and for every endpoint. */
      id: string
      /** @constant */
      object: 'webhook_event'
      /** @enum {string} */
      type:
        | 'session.fingerprint.calculated'
        | 'session.result.persisted'
        | 'gate.session.approved'
        | 'webhook.test'
      /**
       * Format: date-time
       * @description When it happened, not when it was sent.
       */
      created: string
      data:
        | components['schemas']['SessionFingerprintCalculatedPayload']
        | components['schemas']['SessionResultPersistedPayload']
        | components['schemas']['GateApprovedWebhookPayload']
        | components['schemas']['WebhookTestEventPayload']
    }
    WebhookRequestSummary: {
      url: string | null
      user_agent: string | null
      ip_address: string | null
      screen_size: string | null
      /** @description Absent when it is not known. */
      is_touch_capable?: boolean
      /** @description Name of the operating system. */
      platform: string | null
      /**
       * Format: date-time
       * @description When the session began.
       */
      first_seen: string
      /**
       * Format: date-time
       * @description When it was decided about.
       */
      risk_time: string
    }
    WebhookTestEventPayload: {
      /** @constant */
      object: 'webhook_test'
      endpoint: {
        id: string
      }
    } & {
      [key: string]: unknown
    }
    WebhookTestWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'webhook.test'
        data: components['schemas']['WebhookTestEventPayload']
      } & {
        [key: string]: unknown
      })
  }
  responses: never
  parameters: never
  requestBodies: never
  headers: never
  pathItems: never
}
export type ApiErrorDetails = components['schemas']['ApiErrorDetails']
export type ApiFieldIssue = components['schemas']['ApiFieldIssue']
export type Decision = components['schemas']['Decision']
export type GateApprovedWebhookPayload = components['schemas']['GateApprovedWebhookPayload']
export type GateDeliveryRequest = components['schemas']['GateDeliveryRequest']
export type GateSessionApprovedWebhookEvent =
  components['schemas']['GateSessionApprovedWebhookEvent']
export type IdentificationCandidate = components['schemas']['IdentificationCandidate']
export type IdentificationComponent = components['schemas']['IdentificationComponent']
export type IdentificationNext = components['schemas']['IdentificationNext']
export type LogPlace = components['schemas']['LogPlace']
export type ManipulationSummary = components['schemas']['ManipulationSummary']
export type Mark = components['schemas']['Mark']
export type MarkRequestInput = components['schemas']['MarkRequestInput']
export type Phase = components['schemas']['Phase']
export type ScoreExplanation = components['schemas']['ScoreExplanation']
export type ScoreSignal = components['schemas']['ScoreSignal']
export type ScoreStep = components['schemas']['ScoreStep']
export type ScoredRequest = components['schemas']['ScoredRequest']
export type SessionAgent = components['schemas']['SessionAgent']
export type SessionAggregates = components['schemas']['SessionAggregates']
export type SessionAttribution = components['schemas']['SessionAttribution']
export type SessionBrowser = components['schemas']['SessionBrowser']
export type SessionClientTelemetry = components['schemas']['SessionClientTelemetry']
export type SessionConnectionFingerprint = components['schemas']['SessionConnectionFingerprint']
export type SessionDetail = components['schemas']['SessionDetail']
export type SessionDetailDecision = components['schemas']['SessionDetailDecision']
export type SessionDetailDeviceIdentity = components['schemas']['SessionDetailDeviceIdentity']
export type SessionDetailVisitorFingerprint =
  components['schemas']['SessionDetailVisitorFingerprint']
export type SessionDevice = components['schemas']['SessionDevice']
export type SessionEvidence = components['schemas']['SessionEvidence']
export type SessionFacts = components['schemas']['SessionFacts']
export type SessionFingerprintCalculatedPayload =
  components['schemas']['SessionFingerprintCalculatedPayload']
export type SessionFingerprintCalculatedWebhookEvent =
  components['schemas']['SessionFingerprintCalculatedWebhookEvent']
export type SessionGroup = components['schemas']['SessionGroup']
export type SessionHighlight = components['schemas']['SessionHighlight']
export type SessionMark = components['schemas']['SessionMark']
export type SessionNativeApp = components['schemas']['SessionNativeApp']
export type SessionNativeCarrier = components['schemas']['SessionNativeCarrier']
export type SessionNativeMotionPrint = components['schemas']['SessionNativeMotionPrint']
export type SessionNativeRuntimeIntegrity = components['schemas']['SessionNativeRuntimeIntegrity']
export type SessionNetwork = components['schemas']['SessionNetwork']
export type SessionRepeatCounts = components['schemas']['SessionRepeatCounts']
export type SessionRepeats = components['schemas']['SessionRepeats']
export type SessionResultPersistedPayload = components['schemas']['SessionResultPersistedPayload']
export type SessionResultPersistedWebhookEvent =
  components['schemas']['SessionResultPersistedWebhookEvent']
export type SessionRuntimeIntegrity = components['schemas']['SessionRuntimeIntegrity']
export type SessionScoring = components['schemas']['SessionScoring']
export type SessionSummary = components['schemas']['SessionSummary']
export type SessionWebBotAuth = components['schemas']['SessionWebBotAuth']
export type Verdict = components['schemas']['Verdict']
export type VisitorFingerprintDetail = components['schemas']['VisitorFingerprintDetail']
export type VisitorFingerprintLink = components['schemas']['VisitorFingerprintLink']
export type VisitorFingerprintSummary = components['schemas']['VisitorFingerprintSummary']
export type VisitorIdentification = components['schemas']['VisitorIdentification']
export type WebhookEventEnvelope = components['schemas']['WebhookEventEnvelope']
export type WebhookRequestSummary = components['schemas']['WebhookRequestSummary']
export type WebhookTestEventPayload = components['schemas']['WebhookTestEventPayload']
export type WebhookTestWebhookEvent = components['schemas']['WebhookTestWebhookEvent']
export interface operations {
  listVisitorFingerprints: {
    parameters: {
      query?: {
        limit?: number
        /** @description next_cursor of the page before; empty is none. */
        cursor?: string
        /** @description A vid_ id matches exactly; anything else is looked for in id, user agent and IP address. */
        search?: string
        /** @description Largest or newest first; without it, seen most recently first. */
        sort?: 'seen_count' | 'first_seen'
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  getVisitorFingerprint: {
    parameters: {
      query?: {
        /** @description `identification`: why the visitor’s newest session is of it. Anything else adds nothing. */
        include?: string | string[]
      }
      header?: never
      path: {
        visitorId: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  markSessions: {
    parameters: {
      query?: never
      header?: {
        /** @description Makes the request safe to repeat for 24 hours: a repetition with the same key and body gets the first answer. Its body is the same byte for byte, so `meta.request_id` names the request that was answered first; the header `X-Request-Id` names the repetition. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['MarkRequestInput']
      }
    }
    responses: never
  }
  deleteMark: {
    parameters: {
      query?: never
      header?: never
      path: {
        markId: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  scoreRequests: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          requests: {
            method: string
            /** @enum {string} */
            scheme: 'http' | 'https'
            /** @description Host, with its port where that is not the usual one. One of the hosts of your organization. */
            authority: string
            /** @description Path and query as they came. */
            path: string
            /** @description Names and values in the order in which they came, at most 16384 characters together. Leave cookies and credentials out. */
            headers: [string, string][]
            /** @description Whose connection the edge saw. */
            ip: string | unknown | unknown
            ja4?: string | null
          }[]
        }
      }
    }
    responses: never
  }
  listSessions: {
    parameters: {
      query?: {
        limit?: number
        /** @description next_cursor of the page before; empty is none. */
        cursor?: string
        /** @description Sessions whose newest decision was then or later. */
        since?: string[]
        /** @description Sessions whose newest decision was earlier. */
        until?: string[]
        score_min?: number[]
        score_max?: number[]
        handed_off?: ('true' | 'false')[]
        verdict?: ('bot' | 'human' | 'inconclusive')[]
        /** @description A signal that fired. */
        signal?: string[]
        /** @description A value that the session is attributed to, or `kind:value`, as `tool:playwright`. */
        attribution?: string[]
        agent_status?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description Who runs the agent, as `openai`, in any case. */
        agent_provider?: string[]
        country?: string[]
        /** @description 64500 or AS64500. */
        asn?: string[]
        network?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description An address, or a CIDR as 203.0.113.0/24. */
        ip?: string[]
        page_host?: string[]
        visitor_id?: string[]
        client_user_id?: string[]
        /** @description Of the publishable key that opened the session. */
        key_id?: string[]
        /** @description By name without its maker, as `chrome`; A to Z in any case. */
        browser?: string[]
        /** @description By name; A to Z in any case. */
        os?: string[]
        /** @description The newest mark; `none` for sessions without one. */
        mark?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'verdict[not]'?: ('bot' | 'human' | 'inconclusive')[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'signal[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'attribution[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'agent_status[not]'?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'agent_provider[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'country[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'asn[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'network[not]'?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'ip[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'page_host[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'visitor_id[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'client_user_id[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'key_id[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'browser[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'os[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'mark[not]'?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description Fields of which sessions have no value. With values of the same field, either of these or none. */
        without?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description Fields of which sessions have a value. */
        'without[not]'?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description A sid_, evt_ or vid_ id (or a legacy 32-digit hexadecimal one) matches exactly, ignoring case; anything else is looked for in ids, client_user_id, page URL (also as people read it), user agent and IP address. */
        search?: string
        /** @description `resolution`: how each session was tied to its visitor. Anything else adds nothing. */
        include?: string | string[]
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  countSessions: {
    parameters: {
      query: {
        /** @description Sessions whose newest decision was then or later. */
        since?: string[]
        /** @description Sessions whose newest decision was earlier. */
        until?: string[]
        score_min?: number[]
        score_max?: number[]
        handed_off?: ('true' | 'false')[]
        verdict?: ('bot' | 'human' | 'inconclusive')[]
        /** @description A signal that fired. */
        signal?: string[]
        /** @description A value that the session is attributed to, or `kind:value`, as `tool:playwright`. */
        attribution?: string[]
        agent_status?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description Who runs the agent, as `openai`, in any case. */
        agent_provider?: string[]
        country?: string[]
        /** @description 64500 or AS64500. */
        asn?: string[]
        network?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description An address, or a CIDR as 203.0.113.0/24. */
        ip?: string[]
        page_host?: string[]
        visitor_id?: string[]
        client_user_id?: string[]
        /** @description Of the publishable key that opened the session. */
        key_id?: string[]
        /** @description By name without its maker, as `chrome`; A to Z in any case. */
        browser?: string[]
        /** @description By name; A to Z in any case. */
        os?: string[]
        /** @description The newest mark; `none` for sessions without one. */
        mark?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'verdict[not]'?: ('bot' | 'human' | 'inconclusive')[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'signal[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'attribution[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'agent_status[not]'?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'agent_provider[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'country[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'asn[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'network[not]'?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'ip[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'page_host[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'visitor_id[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'client_user_id[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'key_id[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'browser[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'os[not]'?: string[]
        /** @description None of these values. Sessions without a value are among those that meet it. */
        'mark[not]'?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description Fields of which sessions have no value. With values of the same field, either of these or none. */
        without?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description Fields of which sessions have a value. */
        'without[not]'?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description In UTC; at most 1500 of them. */
        interval?: 'none' | 'minute' | 'hour' | 'day'
        /** @description Up to two fields, as `country,verdict`. A session counts under each of its signals and attributions. */
        group_by: (
          | 'verdict'
          | 'signal'
          | 'attribution'
          | 'country'
          | 'asn'
          | 'network'
          | 'page_host'
          | 'key_id'
          | 'browser'
          | 'os'
          | 'handed_off'
          | 'mark'
          | 'agent_status'
          | 'agent_provider'
        )[]
        /** @description How many of the largest groups are counted by themselves; the rest is `other`. */
        top?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  getSession: {
    parameters: {
      query?: {
        /** @description `identification`: why the session is of its visitor. `score`: how its score came about. `log`: where its decision is on the log. Anything else adds nothing. */
        include?: string | string[]
      }
      header?: never
      path: {
        sessionId: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  updateSession: {
    parameters: {
      query?: never
      header?: never
      path: {
        sessionId: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          client_user_id: string | null
        }
      }
    }
    responses: never
  }
}
